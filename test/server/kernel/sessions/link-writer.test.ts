import { describe, expect, it } from 'vitest'
import type { Link } from '../../../../protocol/link/link.ts'
import { LinkWriter } from '../../../../server/kernel/sessions/link-writer.ts'
import { FakeClock } from '../../../support/fake-clock.ts'

/** A writer to a peer that takes one write at a time, by hand. */
function rig() {
  const clock = new FakeClock()
  const taken: (() => void)[] = []
  let isDestroyed = false
  const failures: unknown[] = []
  const link = {
    write: (_: Uint8Array, written: () => void) => void taken.push(written),
    destroy: () => {
      isDestroyed = true
    },
  }
  const writer = new LinkWriter({ link: link as unknown as Link, crashed: (error) => failures.push(error) }, clock)
  return { clock, writer, take: () => taken.shift()?.(), isDestroyed: () => isDestroyed, failures }
}

describe('a callback after a write', () => {
  it('that throws costs its session', () => {
    const { writer, take, failures } = rig()
    const error = new Error('broken')
    writer.write('values', new Uint8Array(8), () => {
      throw error
    })
    take()
    expect([failures, writer.undrained('values')]).toEqual([[error], 0])
  })
})

describe('a peer that reads slowly', () => {
  it('keeps its link as long as it takes something every 30 s', () => {
    const { clock, writer, take, isDestroyed } = rig()
    for (let n = 0; n < 5; n++) writer.write('values', new Uint8Array(8), () => {})
    for (let n = 0; n < 4; n++) {
      clock.advance(29_000)
      take()
    }
    expect([isDestroyed(), writer.undrained('values')]).toEqual([false, 8])
    clock.advance(29_000)
    expect(isDestroyed()).toBe(false)
    clock.advance(1_000)
    expect(isDestroyed()).toBe(true)
  })

  it('has 30 s from the first write after a pause', () => {
    const { clock, writer, take, isDestroyed } = rig()
    writer.write('answers', new Uint8Array(8), () => {})
    take()
    clock.advance(20_000)
    writer.write('answers', new Uint8Array(8), () => {})
    clock.advance(29_000)
    expect(isDestroyed()).toBe(false)
    clock.advance(1_000)
    expect(isDestroyed()).toBe(true)
  })
})
