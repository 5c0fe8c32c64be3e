import { describe, expect, it } from 'vitest'
import type { BatchBuilder } from '../../../../server/kernel/channels/batch.ts'
import { Journal, type Journaled } from '../../../../server/kernel/channels/journal.ts'
import { type Task, TurnScheduler } from '../../../../server/kernel/channels/turn-scheduler.ts'
import type { Batch, Change } from '../../../../storage/store.ts'
import { FakeClock } from '../../../support/fake-clock.ts'

class HandTurn extends TurnScheduler {
  readonly entered: Task[] = []
  override schedule(_phase: string, task: Task): void {
    this.entered.push(task)
  }
}

class Source implements Journaled {
  taken = 0
  storedCount = 0
  /** Bytes that it has stored with each batch. */
  readonly #bytes: number

  constructor(bytes = 0) {
    this.#bytes = bytes
  }

  submit(builder: BatchBuilder): void {
    this.taken++
    builder.copy(new Uint8Array(this.#bytes))
  }
  durable(): void {
    this.storedCount++
  }
}

const change: Change = { put: 'tenant', row: { name: 'default', quota: '{}' } }

function rig() {
  const batches: Batch[] = []
  const turn = new HandTurn(new FakeClock())
  const journal = new Journal({ write: (batch) => batches.push(batch) }, turn, { age: () => 5, wallMs: () => 7 })
  return { batches, turn, journal }
}

describe('the journal', () => {
  it('calls back everybody who waits, although one of them throws', () => {
    const { journal } = rig()
    const called: unknown[] = []
    journal.change(change)
    journal.wait({
      durable: () => {
        throw new Error('broken')
      },
      failed: (error) => called.push((error as Error).message),
    })
    journal.wait({ durable: (mark) => called.push(mark) })
    journal.atTurnEnd()
    journal.onDurable(1)
    expect(called).toEqual(['broken', 1])
  })

  it('counts the bytes of changes until they are durable', () => {
    const { journal } = rig()
    expect(journal.unstored).toBe(0)
    const args = new Uint8Array(5_000)
    journal.change({ put: 'instance', row: { id: 1, user: 1, metric: 'm'.repeat(100), args } })
    const first = journal.unstored
    expect(first).toBeGreaterThanOrEqual(5_100)
    journal.atTurnEnd()
    journal.change({ remove: 'instance', id: 1 })
    expect(journal.unstored).toBeGreaterThan(first)
    journal.onDurable(1)
    expect(journal.unstored).toBeLessThan(200)
    journal.atTurnEnd()
    journal.onDurable(2)
    expect(journal.unstored).toBe(0)
  })

  it('has one batch in flight; what changes meanwhile is the next one', () => {
    const { batches, turn, journal } = rig()
    const source = new Source()
    journal.touch(source)
    journal.atTurnEnd()
    journal.touch(source)
    journal.change(change)
    journal.atTurnEnd()
    expect(batches.map(({ number }) => number)).toEqual([1])
    turn.entered.length = 0
    journal.onDurable(1)
    expect(source.storedCount).toBe(1)
    expect(turn.entered).toEqual([journal])
    journal.atTurnEnd()
    expect(batches.map(({ number, changes, age, wall }) => [number, changes.length, age, wall])).toEqual([
      [1, 0, 5, 7],
      [2, 1, 5, 7],
    ])
    expect(source.taken).toBe(2)
  })

  it('says how many channels its last turn has written: none while a batch is in flight', () => {
    const { journal } = rig()
    journal.touch(new Source())
    journal.touch(new Source())
    journal.atTurnEnd()
    expect(journal.channelsWritten).toBe(2)
    journal.touch(new Source())
    journal.atTurnEnd()
    expect(journal.channelsWritten).toBe(0)
    journal.onDurable(1)
    journal.atTurnEnd()
    expect(journal.channelsWritten).toBe(1)
  })

  it('writes nothing when nothing changed', () => {
    const { batches, journal } = rig()
    journal.atTurnEnd()
    expect(batches).toEqual([])
    expect(journal.busy).toBe(false)
    expect(journal.mark()).toBe(0)
  })

  it('names by a mark what changed so far', () => {
    const { journal } = rig()
    journal.change(change)
    expect(journal.mark()).toBe(1)
    journal.atTurnEnd()
    expect(journal.mark()).toBe(1)
    journal.change(change)
    expect(journal.mark()).toBe(2)
    journal.onDurable(1)
    expect(journal.durable).toBe(1)
    journal.atTurnEnd()
    journal.onDurable(2)
    expect([journal.durable, journal.mark(), journal.busy]).toEqual([2, 2, false])
  })

  it('reaches a mark that was named, even if what had changed is forgotten', () => {
    const { batches, journal } = rig()
    const source = new Source()
    journal.touch(source)
    const mark = journal.mark()
    journal.forget(source)
    journal.atTurnEnd()
    journal.onDurable(1)
    expect(journal.durable).toBe(mark)
    expect(source.taken).toBe(0)
    journal.atTurnEnd()
    expect(batches).toHaveLength(1)
  })

  it('tells those who wait once, and lets them wait again', async () => {
    const { journal } = rig()
    const marks: number[] = []
    journal.wait({ durable: (mark) => marks.push(mark) })
    journal.change(change)
    journal.atTurnEnd()
    journal.change(change)
    let stored = false
    const done = journal.whenStored().then(() => {
      stored = true
    })
    journal.onDurable(1)
    await Promise.resolve()
    expect([marks, stored]).toEqual([[1], false])
    journal.atTurnEnd()
    journal.onDurable(2)
    await done
    expect([marks, stored]).toEqual([[1], true])
    await journal.whenStored()
  })

  it('uses the memory of a batch that is durable for the next one, unless it has become very large', () => {
    const { batches, journal } = rig()
    const large = new Source(40 << 20)
    for (const source of [undefined, large, undefined]) {
      if (source) journal.touch(source)
      journal.change(change)
      journal.atTurnEnd()
      journal.onDurable(batches.length)
    }
    const [first, second, third] = batches.map(({ data }) => data)
    expect(second?.byteLength).toBeGreaterThanOrEqual(40 << 20)
    expect(third?.byteLength).toBe(first?.byteLength)
    journal.change(change)
    journal.atTurnEnd()
    expect(batches[3]?.data).toBe(third)
  })

  describe('that waits for more while nobody waits for it', () => {
    function lingering() {
      const [batches, clock]: [Batch[], FakeClock] = [[], new FakeClock()]
      const turn = new HandTurn(clock)
      const write = (batch: Batch): void => void batches.push(batch)
      const journal = new Journal({ write }, turn, { age: () => 5, wallMs: () => 7 }, { lingerMs: 5, clock })
      /** A turn, if something is scheduled for its end; then how many batches there are. */
      const batchesAfterTurn = (): number => {
        if (turn.entered.splice(0).length > 0) journal.atTurnEnd()
        return batches.length
      }
      return { journal, clock, batchesAfterTurn }
    }

    it('has what comes within 5 ms in one batch', () => {
      const { journal, clock, batchesAfterTurn } = lingering()
      const [one, other] = [new Source(), new Source()]
      journal.touch(one)
      expect(batchesAfterTurn()).toBe(0)
      clock.advance(4)
      journal.touch(other)
      expect(batchesAfterTurn()).toBe(0)
      clock.advance(1)
      expect(batchesAfterTurn()).toBe(1)
      expect([one.taken, other.taken]).toEqual([1, 1])
    })

    it.each<[string, (journal: Journal) => void]>([
      ['a response', (journal) => void journal.mark()],
      ['a feed that is held up', (journal) => journal.wait({ durable() {} })],
      ['a change of an operator', (journal) => journal.change(change)],
    ])('does not keep %s waiting', (_, begin) => {
      const { journal, batchesAfterTurn } = lingering()
      journal.touch(new Source())
      expect(batchesAfterTurn()).toBe(0)
      begin(journal)
      expect(batchesAfterTurn()).toBe(1)
    })

    it('writes at once what came while a batch was on its way for longer', () => {
      const { journal, clock, batchesAfterTurn } = lingering()
      journal.change(change)
      expect(batchesAfterTurn()).toBe(1)
      journal.touch(new Source())
      expect(batchesAfterTurn()).toBe(1)
      clock.advance(10)
      expect(batchesAfterTurn()).toBe(1)
      journal.onDurable(1)
      expect(batchesAfterTurn()).toBe(2)
    })

    it('writes nothing if what had changed is forgotten', () => {
      const { journal, clock, batchesAfterTurn } = lingering()
      const source = new Source()
      journal.touch(source)
      expect(batchesAfterTurn()).toBe(0)
      journal.forget(source)
      clock.advance(5)
      expect(batchesAfterTurn()).toBe(0)
      journal.touch(source)
      expect(batchesAfterTurn()).toBe(0)
      clock.advance(5)
      expect(batchesAfterTurn()).toBe(1)
    })
  })

  it('writes nothing more once storing has failed', () => {
    const { batches, journal } = rig()
    journal.stop()
    journal.change(change)
    journal.atTurnEnd()
    expect(batches).toEqual([])
  })
})
