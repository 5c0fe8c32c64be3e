import { describe, expect, it } from 'vitest'
import type { Link } from '../../../protocol/link/link.ts'
import { Journal } from '../../../server/channels/journal.ts'
import { TurnScheduler } from '../../../server/channels/turn-scheduler.ts'
import { FairWork } from '../../../server/core/fair-work.ts'
import { LinkWriter } from '../../../server/sessions/link-writer.ts'
import { ResponseWriter } from '../../../server/sessions/response-writer.ts'
import type { Change } from '../../../storage/store.ts'
import { FakeClock } from '../../support/fake-clock.ts'

const change: Change = { put: 'tenant', row: { name: 'default', quota: '{}' } }

/** A journal whose batches become durable by hand, and what was written as the sequence numbers of responses. */
function rig() {
  const clock = new FakeClock()
  const turn = new TurnScheduler(clock)
  const journal = new Journal({ write: () => {} }, turn, { age: () => 0, wallMs: () => 0 })
  const answered: number[] = []
  const failures: string[] = []
  const failed = (error: unknown): void => void failures.push((error as Error).message)
  const write = (bytes: Uint8Array, written?: () => void): void => {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    for (let at = 0; at < bytes.length; at += 4 + view.getUint32(at)) answered.push(view.getUint32(at + 8))
    written?.()
  }
  const linkWriter = new LinkWriter({ link: { write } as Link, crashed: failed }, clock)
  const isBehind = false
  const responses = new ResponseWriter({
    journal,
    turn,
    linkWriter,
    work: new FairWork(clock, () => {}),
    tenant: () => 'default',
    isBehind: () => isBehind,
    onProgress: () => {},
    failed,
  })
  /** Answers commands that change something. */
  const changeAndAnswer = (...seqs: number[]): void => {
    for (const seq of seqs) {
      journal.change(change)
      responses.okWhenDurable(seq, 0, { onSent: () => void effects.push(seq) })
    }
  }
  const effects: number[] = []
  return { turn, journal, responses, answered, effects, failures, changeAndAnswer }
}

describe('what follows a response', () => {
  it('starts although an effect before it throws, or an answer: both end the session', () => {
    const { turn, responses, effects, failures } = rig()
    const throwing = (message: string) => () => {
      throw new Error(message)
    }
    responses.ok(1, 0, { onSent: throwing('effect') })
    responses.ok(2, 0, { answer: throwing('answer') })
    responses.ok(3, 0, { onSent: () => void effects.push(3) })
    turn.run()
    expect([effects, failures]).toEqual([[3], ['effect', 'answer']])
  })
})

describe('responses that wait for the disk', () => {
  it('go with their own batch, neither before it nor in parts, and what they let happen follows them', () => {
    const { turn, journal, responses, answered, effects, changeAndAnswer } = rig()
    changeAndAnswer(1, 2)
    turn.run()
    changeAndAnswer(3, 4)
    turn.run()
    expect([answered, effects, responses.unanswered]).toEqual([[], [], 4])
    journal.onDurable(1)
    turn.run()
    expect([answered, effects, responses.unanswered]).toEqual([[1, 2], [1, 2], 2])
    changeAndAnswer(5, 6)
    turn.run()
    journal.onDurable(2)
    turn.run()
    expect([answered, effects, responses.unanswered]).toEqual([[1, 2, 3, 4], [1, 2, 3, 4], 2])
    journal.onDurable(3)
    turn.run()
    expect([answered, effects, responses.unanswered]).toEqual([[1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6], 0])
  })

  it('go at once if what they report is stored, and let others that wait be overtaken', () => {
    const { turn, journal, responses, answered, changeAndAnswer } = rig()
    responses.okWhenDurable(1, 0)
    turn.run()
    expect(answered).toEqual([1])
    changeAndAnswer(2)
    turn.run()
    responses.okWhenDurable(3, 0)
    responses.ok(4, 0)
    turn.run()
    expect(answered).toEqual([1, 4])
    journal.onDurable(1)
    turn.run()
    expect(answered).toEqual([1, 4, 2, 3])
  })
})
