import { describe, expect, it } from 'vitest'
import type { Link } from '../../../../protocol/link/link.ts'
import { Journal } from '../../../../server/kernel/channels/journal.ts'
import { TurnScheduler } from '../../../../server/kernel/channels/turn-scheduler.ts'
import { FairWork } from '../../../../server/kernel/core/fair-work.ts'
import { LinkWriter } from '../../../../server/kernel/sessions/link-writer.ts'
import { ResponseWriter } from '../../../../server/kernel/sessions/response-writer.ts'
import type { Change } from '../../../../storage/store.ts'
import { FakeClock } from '../../../support/fake-clock.ts'

const change: Change = { put: 'tenant', row: { name: 'default', quota: '{}' } }

/** A journal whose batches become durable by hand, and what was written as the sequence numbers of responses. */
function rig() {
  const clock = new FakeClock()
  const turn = new TurnScheduler(clock)
  const journal = new Journal({ write: () => {} }, turn, { age: () => 0, wallMs: () => 0 })
  const answered: number[] = []
  const failures: string[] = []
  const written: Uint8Array[] = []
  const progress = { times: 0 }
  const failed = (error: unknown): void => void failures.push((error as Error).message)
  const write = (bytes: Uint8Array, drained?: () => void): void => {
    written.push(bytes)
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    for (let at = 0; at < bytes.length; at += 4 + view.getUint32(at)) answered.push(view.getUint32(at + 8))
    drained?.()
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
    onProgress: () => void progress.times++,
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
  return { turn, journal, responses, answered, effects, failures, changeAndAnswer, written, progress }
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

  it('are each answered once if their seqs follow each other, over the greatest seq too, and with their own results', () => {
    const { turn, journal, responses, written, changeAndAnswer } = rig()
    changeAndAnswer(0xffff_fffe)
    const answers = [
      [0xffff_ffff, 0],
      [0, 0],
      [1, 0],
      [2, 9],
      [3, 9],
      [4, 0],
      [6, 0],
    ] as const
    for (const [seq, result] of answers) responses.okWhenDurable(seq, result)
    expect(responses.unanswered).toBe(8)
    turn.run()
    journal.onDurable(1)
    turn.run()
    const { buffer, byteOffset, length } = written.at(-1) as Uint8Array
    const view = new DataView(buffer, byteOffset, length)
    const found: number[][] = []
    for (let at = 0; at < length; at += 4 + view.getUint32(at)) {
      found.push([view.getUint32(at + 8), view.getUint32(at + 12), view.getUint32(at + 16)])
    }
    expect(found).toEqual([[0xffff_fffe, 0], ...answers].map(([seq, result]) => [seq, 0, result]))
    expect(responses.unanswered).toBe(0)
  })

  it('are not made before the turn ends, and others that wait meanwhile have their own batch', () => {
    const { turn, journal, responses, answered, changeAndAnswer } = rig()
    changeAndAnswer(1)
    turn.run()
    journal.onDurable(1)
    expect(responses.unanswered).toBe(1)
    changeAndAnswer(2)
    turn.run()
    expect([answered, responses.unanswered]).toEqual([[1], 1])
    journal.onDurable(2)
    turn.run()
    expect([answered, responses.unanswered]).toEqual([[1, 2], 0])
  })

  it('start their effects when the session ends before they are written', () => {
    const { turn, journal, responses, answered, effects, changeAndAnswer } = rig()
    changeAndAnswer(1)
    turn.run()
    journal.onDurable(1)
    responses.end()
    changeAndAnswer(2)
    turn.run()
    journal.onDurable(2)
    expect([answered, effects]).toEqual([[], [1, 2]])
  })

  it('wait as runs of seqs, each with its result', () => {
    const { turn, journal, responses, answered, changeAndAnswer } = rig()
    changeAndAnswer(1)
    responses.oksWhenDurable(10, 3)
    responses.okWhenDurable(20, 7)
    expect(responses.unanswered).toBe(5)
    turn.run()
    journal.onDurable(1)
    turn.run()
    expect([answered, responses.unanswered]).toEqual([[1, 10, 11, 12, 20], 0])
  })
})

describe('responses that are written before something else', () => {
  it('let nothing go on at once, and their effects start at the end of the turn', () => {
    const { turn, responses, answered, effects, progress } = rig()
    responses.ok(1, 0, { onSent: () => void effects.push(1) })
    responses.writeReady()
    expect([answered, effects, progress.times]).toEqual([[1], [], 0])
    turn.run()
    expect([answered, effects, progress.times > 0]).toEqual([[1], [1], true])
  })
})

describe('the buffer of responses', () => {
  it('is given away with its bytes if it has grown, and used again if not', () => {
    const { turn, journal, responses, written, changeAndAnswer } = rig()
    responses.ok(1, 0)
    turn.run()
    changeAndAnswer(2)
    responses.oksWhenDurable(3, 10_000)
    turn.run()
    journal.onDurable(1)
    turn.run()
    const large = (written.at(-1) as Uint8Array).slice()
    expect(large.length).toBe(10_001 * 20)
    for (let seq = 0; seq < 10_000; seq++) responses.ok(seq, 9)
    expect(written.at(-1)).toEqual(large)
    turn.run()
    expect(written.at(-1)?.length).toBe(10_000 * 20)
  })
})
