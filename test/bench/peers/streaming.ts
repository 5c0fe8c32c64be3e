/**
 * Two ends of a server in one process, for `latency`: `send` hands values over, and `received` hears how many have come. Each is
 * acknowledged by itself where the server knows that.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../support/free-port.ts'
import { VALUE_BYTES } from '../processes/end.ts'
import { RawSocket } from '../processes/raw-socket.ts'
import { ServerUnderTest } from '../processes/server-under-test.ts'
import { versionOf } from './contender.ts'
import { jetStream, NatsConnection } from './nats-connection.ts'
import { EntryParser, resp } from './redis-ends.ts'

export interface Ends {
  send(count: number): void
  /** The 99th percentile since it was started, milliseconds; undefined for a server that is not Node. */
  loopDelayP99Ms?(): Promise<string>
  close(): Promise<void>
}

export interface Streaming {
  readonly name: string
  /** Why it cannot take part; undefined: it can. */
  missing(): string | undefined
  open(directory: string, received: (count: number) => void): Promise<Ends>
}

const PAYLOAD = 'v'.repeat(VALUE_BYTES)

export const natsCore: Streaming = {
  name: 'nats core',
  missing: () => missing('nats-server', '-v'),
  async open(directory, received) {
    const { server, port } = await startNats(directory, '')
    const consumer = counting(port, received)
    await consumer.open('v')
    const publisher = new NatsConnection(port, { message() {}, chunkRead() {} })
    const socket = await publisher.open('p')
    return endsOf(server, socket, Buffer.from(`PUB v ${VALUE_BYTES}\r\n${PAYLOAD}\r\n`), consumer.socket)
  },
}

/** PubAcks are read and not waited for. */
export const natsJetStream: Streaming = {
  name: 'jetstream, fsync every 2 minutes',
  missing: () => missing('nats-server', '-v'),
  async open(directory, received) {
    const { server, port } = await startNats(directory, `jetstream { store_dir: ${JSON.stringify(directory)} }\n`)
    await jetStream(port, 'STREAM.CREATE.S', { name: 'S', subjects: ['v'], storage: 'file' })
    const consumer = acknowledging(port, received)
    await consumer.open('d')
    const config = { durable_name: 'C', ack_policy: 'explicit', deliver_subject: 'd', max_ack_pending: -1 }
    await jetStream(port, 'CONSUMER.DURABLE.CREATE.S.C', { stream_name: 'S', config })
    const publisher = new NatsConnection(port, { message() {}, chunkRead() {} })
    const socket = await publisher.open('p')
    return endsOf(server, socket, Buffer.from(`PUB v p ${VALUE_BYTES}\r\n${PAYLOAD}\r\n`), consumer.socket)
  },
}

export function redisStreams(fsync: 'no' | 'always'): Streaming {
  return {
    name: fsync === 'always' ? 'redis streams, fsync always' : 'redis streams, in memory',
    missing: () => missing('redis-server', '--version'),
    async open(directory, received) {
      const port = await freePort()
      const durable = fsync === 'always' ? ['--appendonly', 'yes', '--appendfsync', 'always'] : ['--appendonly', 'no']
      const args = ['--port', String(port), '--bind', '127.0.0.1', '--dir', directory, '--save', '', ...durable]
      const server = await ServerUnderTest.start({ program: 'redis-server', args, port })
      const read = resp('XREADGROUP', 'GROUP', 'g', 'c', 'COUNT', '1000', 'BLOCK', '0', 'STREAMS', 's', '>')
      const acks = await new RawSocket(port, (_bytes, _view, end) => end).connected()
      acks.write(resp('XGROUP', 'CREATE', 's', 'g', '0', 'MKSTREAM'))
      const parser = new EntryParser()
      const reader = new RawSocket(port, (bytes, _view, end) => {
        const parsed = parser.parse(bytes, end)
        if (parsed.acks.length > 0) acks.write(parsed.acks)
        for (let reply = 0; reply < parsed.replies; reply++) reader.write(read)
        received(parsed.entries)
        return parsed.used
      })
      await reader.connected()
      // The group is made on another connection.
      await new Promise((resolve) => setTimeout(resolve, 200))
      reader.write(read)
      const publisher = await new RawSocket(port, (_bytes, _view, end) => end).connected()
      return endsOf(server, publisher, resp('XADD', 's', '*', 'v', PAYLOAD), reader, acks)
    },
  }
}

function missing(program: string, option: string): string | undefined {
  return versionOf(program, option) === undefined ? `${program} is not installed` : undefined
}

async function startNats(directory: string, more: string): Promise<{ server: ServerUnderTest; port: number }> {
  const port = await freePort()
  const file = join(directory, 'nats.conf')
  writeFileSync(file, `listen: "127.0.0.1:${port}"\nmax_pending: 1GB\n${more}`)
  return { server: await ServerUnderTest.start({ program: 'nats-server', args: ['-c', file], port }), port }
}

function counting(port: number, received: (count: number) => void): NatsConnection {
  let count = 0
  return new NatsConnection(port, {
    message() {
      count++
    },
    chunkRead() {
      received(count)
      count = 0
    },
  })
}

function acknowledging(port: number, received: (count: number) => void): NatsConnection {
  let acks: string[] = []
  const connection = new NatsConnection(port, {
    message({ bytes, replyAt, replyEnd }) {
      if (replyEnd === replyAt) return
      acks.push(`PUB ${Buffer.from(bytes.buffer, replyAt, replyEnd - replyAt).toString()} 4\r\n+ACK\r\n`)
    },
    chunkRead() {
      if (acks.length > 0) connection.send(acks.join(''))
      received(acks.length)
      acks = []
    },
  })
  return connection
}

function endsOf(server: ServerUnderTest, publisher: RawSocket, value: Uint8Array, ...others: RawSocket[]): Ends {
  return {
    send(count) {
      publisher.write(Buffer.alloc(count * value.length, value))
    },
    async close() {
      for (const socket of [publisher, ...others]) socket.close()
      await server.stop()
    },
  }
}
