/** Questions at one upstream: each user has a part of what may be asked at once, and those who wait have turns. */
import { describe, expect, it } from 'vitest'
import { Questions } from '../../../../server/wings/upstream/questions.ts'
import { args, command, str, type } from '../../../support/bytes.ts'
import { FakeClock } from '../../../support/fake-clock.ts'
import { decoded } from '../../../support/records.ts'
import { Tree } from '../../../support/tree.ts'

/** Questions that are answered when the test says so, in the order in which they were sent. */
class Upstream {
  readonly clock = new FakeClock()
  readonly questions = new Questions(this.clock)
  readonly sent: { readonly user: number; answer(): void; fail(): void }[] = []

  ask(user: number, waitMs = 1_000): Promise<string | undefined> {
    return this.questions.ask(
      user,
      waitMs,
      () =>
        new Promise((resolve, reject) => {
          this.sent.push({ user, answer: () => resolve('answer'), fail: () => reject(new Error('refused')) })
        }),
    )
  }

  sentOf(user: number): number {
    return this.sent.filter((one) => one.user === user).length
  }
}
const settled = () => new Promise((resolve) => setImmediate(resolve))

describe('questions at an upstream', () => {
  it('of one user leave room for those of the others', async () => {
    const upstream = new Upstream()
    for (let i = 0; i < 1_000; i++) void upstream.ask(1)
    void upstream.ask(2)
    await settled()
    expect([upstream.sentOf(1), upstream.sentOf(2)]).toEqual([250, 1])
  })

  it('are asked as soon as others are answered, or refused', async () => {
    const upstream = new Upstream()
    const asked = Array.from({ length: 252 }, () => upstream.ask(1).catch(() => 'refused'))
    await settled()
    expect(upstream.sentOf(1)).toBe(250)
    upstream.sent[0]?.answer()
    upstream.sent[1]?.fail()
    await settled()
    expect(upstream.sentOf(1)).toBe(252)
    expect(await asked[1]).toBe('refused')
    for (const { answer } of upstream.sent) answer()
    expect(new Set(await Promise.all(asked))).toEqual(new Set(['answer', 'refused']))
  })

  it('of users who wait have turns when all places are taken', async () => {
    const upstream = new Upstream()
    for (let user = 1; user <= 4; user++) for (let i = 0; i < 250; i++) void upstream.ask(user)
    for (let i = 0; i < 3; i++) void upstream.ask(5)
    void upstream.ask(6)
    await settled()
    expect(upstream.sent).toHaveLength(1_000)
    for (let i = 0; i < 3; i++) {
      upstream.sent[i]?.answer()
      await settled()
    }
    expect(upstream.sent.slice(1_000).map(({ user }) => user)).toEqual([5, 6, 5])
  })

  it('that have waited for too long are not asked any more, and counted', async () => {
    const upstream = new Upstream()
    for (let i = 0; i < 250; i++) void upstream.ask(1)
    const late = upstream.ask(1, 500)
    upstream.clock.advance(500)
    expect(await late).toBeUndefined()
    expect(upstream.questions.late).toBe(1)
    upstream.sent[0]?.answer()
    await settled()
    expect(upstream.sentOf(1)).toBe(250)
  })
})

it('of two users, those who ask for much leave room to the other', async () => {
  const tree = await Tree.start()
  try {
    await tree.connected()
    const [greedy, other] = [await tree.upper.seat('greedy'), await tree.upper.seat('other')]
    const east = ['producer', type.string, str('east')] as const
    // Lists are not shared: each is a question of its own.
    for (let i = 0; i < 300; i++) greedy.send((seq) => command.query(seq, 'slow.*', args(east)))
    const asked = (): number =>
      tree.commands.filter((frame) => frame.readUInt32BE(4) === 12 && frame.includes('slow.')).length
    await tree.until(() => expect(asked()).toBe(250))
    tree.lower.emit(5)
    expect(decoded(await other.query('test.a', args(east, ['host', type.string, str('h1')])))).toBe(5)
    expect(asked()).toBe(250)
  } finally {
    await tree.stop()
  }
})
