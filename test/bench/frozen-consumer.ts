/**
 * A process with some consumers, each on a connection and a durable channel of its own, that commit every value by itself
 * and measure how long it was on its way: the value is the monotonic time of its sending, in ms, which all processes of a
 * machine share. Started by `frozen.ts` with port, user, password and number of consumers.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { ScramClient } from '../../auth/scram/client.ts'
import { args, command, str, type } from '../support/bytes.ts'
import { RawPeer } from '../support/raw-peer.ts'
import { Seat } from '../support/seat.ts'

export interface Measured {
  readonly values: number
  readonly p50Ms: number
  readonly p99Ms: number
}

const VALUE_BYTES = 32
const [port = '', user = '', password = '', count = ''] = process.argv.slice(2)
let delays: number[] = []

for (let consumer = 0; consumer < Number(count); consumer++) follow(await prepared())
process.send?.('ready')
process.on('message', () => {
  delays.sort((a, b) => a - b)
  const at = (share: number): number => delays[Math.floor(delays.length * share)] ?? 0
  process.send?.({ values: delays.length, p50Ms: at(0.5), p99Ms: at(0.99) } satisfies Measured)
  delays = []
})

async function prepared(): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port: Number(port), noDelay: true })
  await once(socket, 'connect')
  const peer = new RawPeer(socket)
  await peer.until('caps')
  // Not `password`: bcrypt two hundred times takes longer than the benchmark.
  const scram = new ScramClient({ identity: user, password })
  peer.send(command.auth(0xfff00000, 'scram-sha-256', scram.first()))
  peer.send(command.auth(0xfff00001, '', await scram.final((await peer.until('auth')).data)))
  scram.verify((await peer.until('auth')).data)
  peer.send(command.auth(0xfff00002, '', new Uint8Array(0)))
  if ((await peer.response(0xfff00002)).status !== 0) throw new Error('AUTH was refused')
  const seat = new Seat(peer, 0)
  await seat.setChannel(await seat.defChannel())
  const id = await seat.collect('gmetric.frozen', args(['host', type.string, str('127.0.0.1')]))
  await seat.ok((seq) => command.subscribe(seq, id))
  return socket
}

/** From here on only values come, and responses to COMMITs, which are passed over. */
function follow(socket: Socket): void {
  socket.removeAllListeners('data')
  let rest: Buffer = Buffer.alloc(0)
  let seq = 1_000
  socket.on('data', (chunk: Buffer) => {
    const now = Number(process.hrtime.bigint()) / 1e6
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    let at = 0
    for (; rest.length - at >= 4; at += 4 + rest.readUInt32BE(at)) {
      const length = rest.readUInt32BE(at)
      if (rest.length - at < 4 + length) break
      if (length !== VALUE_BYTES || rest.readUInt32BE(at + 24) !== type.double) continue
      delays.push(now - rest.readDoubleBE(at + 28))
      socket.write(command.commit(seq++, Number(rest.readBigUInt64BE(at + 8))))
    }
    rest = rest.subarray(at)
  })
}
