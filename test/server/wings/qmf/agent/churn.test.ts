/** Whatever comes and goes between and during broadcasts: who listens has what there is, in the end. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { QmfMessage } from '../../../../../protocol/qmf/types.ts'
import { AgentPeer } from './fixture.ts'

/** As a console that began with the first broadcast has it: channel id -> queued. */
class Listener {
  readonly #ids = new Map<string, unknown>()
  readonly #values = new Map<string, unknown>()

  hear(message: QmfMessage): void {
    if ((message.op !== 'c' && message.op !== 'i') || message.header.key.className !== 'channel') return
    const { id, deleted } = message.header
    if (deleted !== 0n) {
      this.#ids.delete(id)
      this.#values.delete(id)
    } else if (message.op === 'c') this.#ids.set(id, message.properties[0])
    else this.#values.set(id, message.statistics[0])
  }

  get channels(): [unknown, unknown][] {
    return [...this.#ids].map(([id, channel]) => [channel, this.#values.get(id)])
  }
}

const steps = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.record({ op: fc.constant('make' as const), many: fc.constantFrom(1, 3, 700) }) },
    { weight: 3, arbitrary: fc.record({ op: fc.constant('end' as const), at: fc.nat(3_000) }) },
    { weight: 3, arbitrary: fc.record({ op: fc.constant('count' as const), at: fc.nat(3_000) }) },
    { weight: 2, arbitrary: fc.record({ op: fc.constant('pass' as const), seconds: fc.integer({ min: 1, max: 12 }) }) },
    { weight: 4, arbitrary: fc.record({ op: fc.constant('complete' as const) }) },
    { weight: 2, arbitrary: fc.record({ op: fc.constant('ask' as const) }) },
    { weight: 1, arbitrary: fc.record({ op: fc.constant('x' as const) }) },
  ),
  { maxLength: 30 },
)

it('nothing is missed, and nothing stays that is gone', () => {
  fc.assert(
    fc.property(steps, (list) => {
      const peer = new AgentPeer().attach()
      const { channels } = peer.producer
      const listener = new Listener()
      const listen = (): void => {
        for (const message of peer.messages()) listener.hear(message)
      }
      let next = 1
      for (const step of list) {
        const channel = 'at' in step ? channels[step.at % (channels.length || 1)] : undefined
        if (step.op === 'make') for (let i = 0; i < step.many; i++) peer.producer.channel(next++)
        if (step.op === 'end' && channel !== undefined) channel.isGone = true
        if (step.op === 'count' && channel !== undefined) channel.queued++
        if (step.op === 'pass') peer.pass(step.seconds)
        if (step.op === 'complete') peer.complete()
        if (step.op === 'ask') peer.tell('r', { op: 'G', sequence: 1, query: new Map([['_class', 'channel']]) })
        if (step.op === 'x') peer.tell(undefined, { op: 'x', sequence: 0 })
        listen()
      }
      peer.completeAll()
      for (let round = 0; round < 2; round++) {
        peer.pass(10)
        peer.completeAll()
      }
      listen()
      const there = channels.filter(({ isGone }) => isGone !== true).map(({ id, queued }) => [id, queued])
      expect(listener.channels.toSorted((a, b) => Number(a[0]) - Number(b[0]))).toEqual(there)
      expect(peer.down).toEqual([])
    }),
    { numRuns: 40 },
  )
})
