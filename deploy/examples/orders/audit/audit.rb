# Writes down every order, group "audit": it sees each message as well, however
# far the worker is. What is written down is acknowledged; the rest comes again.
require 'json'
require 'net/http'
require 'socket'

GROUP = '/v1/topics/orders/groups/audit'.freeze

# HTTP over the broker's Unix socket.
class Broker < Net::HTTP
  def connect
    @socket = Net::BufferedIO.new(UNIXSocket.new(ENV.fetch('PODMQ_SOCKET')), read_timeout: 30)
    on_connect
  end

  def self.open
    broker = new('podmq')
    broker.max_retries = 0
    broker.start
  end

  def call(path, query)
    answer = post("#{GROUP}/#{path}?#{URI.encode_www_form(query)}", '', 'Content-Type' => 'text/plain')
    [answer.code.to_i, JSON.parse(answer.body)]
  end
end

def follow(broker)
  loop do
    status, batch = broker.call('poll', max: 100, wait: '10s')
    raise IOError, batch['detail'] unless status == 200

    batch['messages'].each do |m|
      order = JSON.parse(m['payload'])
      puts "audited #{m['partition']}:#{m['offset']} #{order['customer']} #{order['item']}"
    end
    broker.call('ack', receipt: batch['receipt']) if batch['receipt']
  end
end

$stdout.sync = true
trap('TERM') { exit }
begin
  follow(Broker.open)
rescue SystemCallError, IOError, Net::ReadTimeout => e
  warn "no orders: #{e.message}"
  sleep 0.5
  retry
end
