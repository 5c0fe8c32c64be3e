import { describe, expect, it } from 'vitest'
import { Journal, type Journaled } from '../../../server/channels/journal.ts'
import { type Task, Turn } from '../../../server/channels/turn.ts'
import type { Batch, Change } from '../../../storage/store.ts'

class HandTurn extends Turn {
  readonly entered: Task[] = []
  override enter(_phase: string, task: Task): void {
    this.entered.push(task)
  }
}

class Source implements Journaled {
  taken = 0
  storedCount = 0
  take(): { blocks: never[]; reserving: number } {
    this.taken++
    return { blocks: [], reserving: 0 }
  }
  stored(): void {
    this.storedCount++
  }
}

const change: Change = { put: 'tenant', row: { name: 'default' } }

function rig() {
  const batches: Batch[] = []
  const turn = new HandTurn()
  const journal = new Journal({ write: (batch) => batches.push(batch) }, turn, { age: () => 5, wallMs: () => 7 })
  return { batches, turn, journal }
}

describe('the journal', () => {
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
    journal.onDurable(1, undefined)
    expect(source.storedCount).toBe(1)
    expect(turn.entered).toEqual([journal])
    journal.atTurnEnd()
    expect(batches.map(({ number, changes, age, wall }) => [number, changes.length, age, wall])).toEqual([
      [1, 0, 5, 7],
      [2, 1, 5, 7],
    ])
    expect(source.taken).toBe(2)
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
    journal.onDurable(1, undefined)
    expect(journal.durable).toBe(1)
    journal.atTurnEnd()
    journal.onDurable(2, undefined)
    expect([journal.durable, journal.mark(), journal.busy]).toEqual([2, 2, false])
  })

  it('reaches a mark that was named, even if what had changed is forgotten', () => {
    const { batches, journal } = rig()
    const source = new Source()
    journal.touch(source)
    const mark = journal.mark()
    journal.forget(source)
    journal.atTurnEnd()
    journal.onDurable(1, undefined)
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
    journal.onDurable(1, undefined)
    await Promise.resolve()
    expect([marks, stored]).toEqual([[1], false])
    journal.atTurnEnd()
    journal.onDurable(2, undefined)
    await done
    expect([marks, stored]).toEqual([[1], true])
    await journal.whenStored()
  })

  it('uses the buffer that came back, unless it has become very large', () => {
    const { batches, journal } = rig()
    const buffer = new ArrayBuffer(100)
    for (const back of [buffer, new ArrayBuffer(20 << 20), undefined]) {
      journal.change(change)
      journal.atTurnEnd()
      journal.onDurable(batches.length, back)
    }
    expect(batches.map(({ data }) => data === buffer)).toEqual([false, true, false])
  })

  it('writes nothing more once storing has failed', () => {
    const { batches, journal } = rig()
    journal.stop()
    journal.change(change)
    journal.atTurnEnd()
    expect(batches).toEqual([])
  })
})
