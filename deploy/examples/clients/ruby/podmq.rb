#!/usr/bin/env ruby
# A producer and a consumer for PodMQ, with nothing but Ruby's standard library.
#
#     podmq.rb produce TOPIC [N]
#     podmq.rb consume TOPIC GROUP
require 'json'
require 'net/http'
require 'socket'

SOCKET = ENV.fetch('PODMQ_SOCKET', '/run/podmq/podmq.sock')

# HTTP over a Unix socket.
class UnixHTTP < Net::HTTP
  def connect
    @socket = Net::BufferedIO.new(UNIXSocket.new(SOCKET), read_timeout: 30) # longer than any wait below
    on_connect
  end
end

def broker
  return @broker if @broker&.started?

  @broker = UnixHTTP.new('podmq')
  @broker.max_retries = 0 # call repeats, and knows why
  @broker.start
end

def once(method, path, query, body)
  path += "?#{URI.encode_www_form(query)}" unless query.empty?
  broker.send_request(method, path, body, 'Content-Type' => 'text/plain')
end

# Makes one call. It does not give up: what the broker cannot take now (429, 503)
# is tried again when it says, and a broker that is away is waited for. A publish
# repeated so may arrive twice.
def call(method, path, query = {}, body = '')
  delay = 0.1
  loop do
    answer = once(method, path, query, body)
    status = answer.code.to_i
    return status, (answer.body.to_s.empty? ? {} : JSON.parse(answer.body)) unless [429, 503].include?(status)

    sleep((answer['Retry-After'] || 1).to_f)
  rescue SystemCallError, IOError, Net::ReadTimeout, Net::HTTPBadResponse => e
    @broker = nil
    warn "broker away (#{e.class}), trying again"
    sleep delay
    delay = [delay * 2, 5].min
  end
end

def must((status, answer))
  abort "refused: #{answer['detail']}" if status >= 400
  answer
end

def produce(topic, count)
  1.upto(count) do |i|
    payload = "ruby #{i}"
    at = must(call('POST', "/v1/topics/#{topic}/messages", { key: "user-#{i % 4}", wait: '5s' }, payload))
    puts "#{at['partition']}:#{at['offset']} #{payload}"
  end
end

def consume(topic, group)
  member = "ruby-#{Process.pid}"
  path = "/v1/topics/#{topic}/groups/#{group}"
  must call('PUT', path) # fine when it exists
  trap('TERM') { exit }
  loop do
    status, batch = call('POST', "#{path}/poll", { member: member, wait: '5s' })
    if status == 404 # a restarted broker knows only the groups in its settings
      must call('PUT', path)
      next
    end
    must [status, batch]
    batch['messages'].each do |m|
      payload = m.key?('payload_base64') ? m['payload_base64'].unpack1('m') : m['payload']
      $stdout.write("#{m['partition']}:#{m['offset']} ", payload, "\n")
    end
    next if batch['messages'].empty?

    status, = call('POST', "#{path}/ack", { receipt: batch['receipt'] }) # the work is done: say so
    warn 'receipt is stale, going on' if status == 409 # handed out again since, or by a broker that is gone
  end
ensure # what is not acked goes to the others at once
  begin
    @broker = nil
    once('DELETE', "#{path}/members/#{member}", {}, nil) if member
  rescue SystemCallError, IOError
    nil
  end
end

$stdout.sync = true
$stdout.binmode
verb, topic, last = ARGV
if verb == 'produce' && topic
  produce(topic, (last || 10).to_i)
elsif verb == 'consume' && topic && last
  consume(topic, last)
else
  abort 'usage: podmq.rb produce TOPIC [N] | consume TOPIC GROUP'
end
