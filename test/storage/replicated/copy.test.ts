/** The receiver of a copy, whose leader may be none: what it sends is bounded, checked, and changes nothing unless it is whole. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { headers, type Msg, type NatsConnection } from '@nats-io/transport-node'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { receiveCopy } from '../../../storage/replicated/copy.ts'
import { connectNats } from '../../../storage/replicated/nats.ts'
import { NatsServers, natsMissing } from '../../support/nats.ts'

const howTo = natsMissing === undefined ? '' : ` (${natsMissing})`
const PIECE_BYTES = 512 * 1024

interface Sent {
  /** What the leader answers, as JSON; undefined: nothing. */
  readonly answer: string | undefined
  /** The pieces that it sends: where each begins, and how long it is. */
  readonly pieces?: readonly (readonly [offset: number, bytes: number])[]
  readonly sum?: string
}

// Skipped only where nats-server is missing; the name says how to install it.
describe.skipIf(natsMissing !== undefined)(`the receiver of a copy${howTo}`, () => {
  let servers: NatsServers
  let leader: NatsConnection
  let follower: NatsConnection
  let directory: string
  beforeAll(async () => {
    servers = await NatsServers.start(1)
    const nats = { servers: servers.urls }
    ;[leader, follower] = [await connectNats(nats, 'leader'), await connectNats(nats, 'follower')]
  })
  afterAll(async () => {
    for (const connection of [leader, follower]) await connection.close()
    await servers.stop()
  })
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'copy-'))
    writeFileSync(join(directory, 'cinnabar.db'), 'a database')
  })
  afterEach(() => rmSync(directory, { recursive: true, force: true }))

  function send(asked: Msg, { answer, pieces = [], sum }: Sent): void {
    if (answer !== undefined) asked.respond(answer)
    for (const [offset, bytes] of pieces) {
      const given = headers()
      given.set('Cin-Offset', String(offset))
      leader.publish(asked.string(), new Uint8Array(bytes), { headers: given })
    }
    if (sum === undefined) return
    const last = headers()
    last.set('Cin-Offset', String(pieces.reduce((total, [, bytes]) => total + bytes, 0)))
    last.set('Cin-Sha256', sum)
    leader.publish(asked.string(), new Uint8Array(0), { headers: last })
  }

  async function receive(sent: Sent, signal: AbortSignal, onAsked: () => void): Promise<unknown> {
    const subscription = leader.subscribe('cin.main.copy.n1', {
      callback: (_error, message) => {
        send(message, sent)
        onAsked()
      },
    })
    await leader.flush()
    try {
      const source = { connection: follower, cluster: 'main', node: 'n1', directory }
      return await receiveCopy(source, 0, () => {}, signal)
    } finally {
      subscription.unsubscribe()
    }
  }

  const endless = Array.from({ length: 20 }, (_, index) => [index * PIECE_BYTES, PIECE_BYTES] as const)

  test.each<[string, Sent, string]>([
    ['refuses', { answer: '{"refused":"no"}' }, 'did not come whole: no'],
    ['answers nothing known', { answer: 'null' }, 'the leader answered nothing known'],
    ['announces no number', { answer: '{"bytes":1e400}' }, 'the leader answered nothing known'],
    ['answers no JSON', { answer: '{' }, 'JSON'],
    ['sends more than it has announced', { answer: '{"bytes":10}', pieces: [[0, 11]] }, 'more came than'],
    ['sends without end, and does not say how much', { answer: undefined, pieces: endless }, 'more came than'],
    ['sends less', { answer: '{"bytes":10}', pieces: [[0, 5]], sum: 'e'.repeat(64) }, 'its checksum is wrong'],
    ['leaves something out', { answer: '{"bytes":20}', pieces: [[5, 10]] }, 'a piece is missing'],
    [
      'sends no database',
      // SHA-256 of 16 zeroes, by sha256sum.
      {
        answer: '{"bytes":16}',
        pieces: [[0, 16]],
        sum: '374708fff7719dd5979ec875d56cd2286f6d3cf7ec317a3b25632aab28ec37bb',
      },
      'cannot be read',
    ],
  ])('changes nothing if the leader %s', async (_what, sent, reason) => {
    await expect(receive(sent, new AbortController().signal, () => {})).rejects.toThrow(reason)
    expect(readdirSync(directory).sort()).toEqual(['cinnabar.db', 'lock.db'])
  })

  test('gives up at once if it is told so, while the leader says nothing', async () => {
    const copying = new AbortController()
    const given = receive({ answer: undefined }, copying.signal, () => copying.abort())
    await expect(given).rejects.toThrow('it was given up')
    expect(readdirSync(directory).sort()).toEqual(['cinnabar.db', 'lock.db'])
  })
})
