/**
 * Brokers that do what they should not when they are connected to, or afterwards: each costs what it has itself and nothing
 * else, the catalogue of sensors says what is wrong, and when it behaves again it is taken back.
 */
import { afterEach, beforeEach, describe, it } from 'vitest'
import type { BrokerPeer, Stage } from '../../../support/qmf/broker.ts'
import { broadcasts } from '../../../support/qmf/recording.ts'
import { code, control, frames, HEADER, transfer, u16, u32 } from '../../../support/qmf/wire.ts'
import { Neighbours } from './neighbours.ts'

let both: Neighbours

beforeEach(async () => {
  both = await Neighbours.listen()
})
afterEach(async () => {
  await both.stop()
})

const at = (stage: Stage, does: (peer: BrokerPeer) => void) => (now: Stage, peer: BrokerPeer) => {
  if (now === stage) does(peer)
  return now === stage
}
const silent = (): void => {}
/** AMQP 1.0. */
const OTHER = Buffer.from('414d515000010000', 'hex')
const heartbeat = broadcasts.find(({ routingKey }) => routingKey.startsWith('console.heartbeat'))!.body

/** And closes. */
function says(...parts: readonly Buffer[]): (peer: BrokerPeer) => void {
  return (peer) => {
    peer.write(Buffer.concat(parts))
    peer.end()
  }
}

describe('at the login', () => {
  it.each<[string, (stage: Stage, peer: BrokerPeer) => boolean, string]>([
    ['says nothing', at('header', silent), 'no session within 10 seconds'],
    ['does not answer the login', at('tune', silent), 'no session within 10 seconds'],
    ['does not open', at('open-ok', silent), 'no session within 10 seconds'],
    ['does not attach', at('attached', silent), 'no session within 10 seconds'],
    ['speaks another version and closes', at('header', says(OTHER)), 'the server speaks'],
    ['speaks another protocol', at('header', (peer) => peer.write(Buffer.from('220 mail.example ESMTP\r\n'))), ''],
    [
      'refuses the login',
      at('tune', (peer) => peer.closeConnection(320, 'no such user')),
      'the server refused the login (320): no such user',
    ],
    [
      'refuses the virtual host',
      at('open-ok', (peer) => peer.closeConnection(402, 'no vhost')),
      'the server closed the connection (402): no vhost',
    ],
    ['refuses the session', at('attached', (peer) => peer.detachSession()), 'the server detached the session (2'],
    ['closes at once', at('header', (peer) => peer.end()), 'the broker closed the connection'],
    [
      'closes inside its first frame',
      at('header', says(HEADER, Buffer.from('0f0000bd00', 'hex'))),
      'the broker closed the connection',
    ],
    ['resets', at('tune', (peer) => peer.socket.resetAndDestroy()), 'read ECONNRESET'],
    ['never reads', at('header', (peer) => peer.socket.pause()), 'no session within 10 seconds'],
    [
      'sends a frame that is too short',
      at('header', (peer) => peer.write(Buffer.concat([HEADER, Buffer.alloc(64)]))),
      'a frame of 0 bytes',
    ],
    [
      'sends commands before the session',
      at('header', (peer) => peer.write(Buffer.concat([HEADER, transfer('rdest', 'x', Buffer.alloc(9))]))),
      '',
    ],
  ])('%s', async (_, instead, why) => {
    both.bad.instead = instead
    await both.start()
    await both.downWithin(12, why)
    await both.othersGoOn()
    await both.behave()
    await both.othersGoOn()
  })
})

describe('afterwards', () => {
  const body = Buffer.alloc(60_000)
  it.each<[string, () => void, string]>([
    [
      'closes the connection',
      () => both.peer.closeConnection(320, 'shutting down'),
      'the server closed the connection (320): shutting down',
    ],
    ['closes without a word', () => both.peer.end(), 'the broker closed the connection'],
    [
      'closes inside a frame',
      () => says(transfer('tdest', 'console.heartbeat.1.0', heartbeat).subarray(0, -5))(both.peer),
      'the broker closed the connection',
    ],
    ['resets', () => both.bad.kick(), ''],
    ['detaches the session', () => both.peer.detachSession(), 'the server detached the session (2'],
    [
      'refuses a command',
      () => both.peer.refuse(404, 'no queue'),
      'the server refused message.transfer and ended the session (404): no queue',
    ],
    [
      'sends a message without end',
      () => {
        both.peer.write(transfer('tdest', 'x', Buffer.alloc(0)).subarray(0, -12))
        for (let n = 0; n < 20; n++) both.peer.write(frames(3, 4, 1, body).fill(n === 0 ? 6 : 4, 0, 1))
      },
      'a segment of more than 1048576 bytes',
    ],
    [
      'begins without ending',
      () => {
        for (let channel = 1; channel < 9; channel++) both.peer.write(frames(1, 8, channel, body))
      },
      'more than 4 commands have begun',
    ],
    ['sends what is no frame', () => both.peer.write(Buffer.from('x'.repeat(1_000))), 'a frame with the flags'],
    [
      'sends a header that says nothing',
      () =>
        both.peer.write(
          Buffer.concat([
            frames(1, 8, 1, Buffer.from('04010100070001780100', 'hex')),
            frames(2, 0, 1, Buffer.from('ffffffff0403', 'hex')),
            frames(3, 4, 1, Buffer.alloc(3)),
          ]),
        ),
      '',
    ],
  ])('%s', async (_, misbehave, why) => {
    await both.startBoth()
    misbehave()
    await both.server.down('bad', why)
    await both.othersGoOn()
    await both.behave()
    await both.othersGoOn()
  })

  it('falls silent', async () => {
    both.bad.heartbeatSeconds = 10
    await both.startBoth()
    both.peer.socket.pause()
    await both.downWithin(25, 'the broker has been silent for too long')
    await both.othersGoOn()
    await both.behave()
  })

  it('has to be answered at length and reads nothing', async () => {
    await both.startBoth()
    const { peer } = both
    peer.socket.pause()
    const ranges = Buffer.concat(Array.from({ length: 16_000 }, (_, n) => u32(n & ~1)))
    const completed = control(code.completed, 0x0300, u16(ranges.length), ranges)
    // How much of the answers the kernel takes is not known: some megabytes.
    while (!both.server.status().detail.includes('bad: waiting')) {
      if (peer.socket.writableLength < 1 << 20) peer.write(completed)
      await new Promise((resolve) => setImmediate(resolve))
    }
    await both.server.down('bad', 'the broker does not read')
    await both.othersGoOn()
    await both.behave()
  })
})
