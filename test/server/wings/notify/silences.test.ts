/** Silences: in force until they end, and shown for a while after that. */
import { expect, it } from 'vitest'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import { Silences } from '../../../../server/wings/notify/silences.ts'
import type { Change } from '../../../../storage/store.ts'

const NOW = 1_700_000_000_000
const DAY = 86_400_000

function silences() {
  const changes: Change[] = []
  const found = new Silences([], { change: (change) => changes.push(change) })
  const add = (tenant: string, ends: number, begins = NOW) =>
    found.add({ tenant, kind: 'silence', matchers: '["a=b"]', begins, ends, author: 'ann', comment: '' })
  return { found, add, changes }
}

it('what has ended, or was ended, is shown for five days, the last to end first', () => {
  const { found, add } = silences()
  const alert = { labels: [['a', 'b']], fingerprint: '', firedMs: NOW } as const
  const first = add('acme', NOW + DAY)
  const second = add('acme', NOW + 3 * DAY)
  const ids = (all: readonly { readonly row: { readonly id: string } }[]) => all.map(({ row }) => row.id)
  expect(ids(found.of('acme', NOW))).toEqual([first?.id, second?.id])
  expect(found.end('acme', second?.id ?? '', NOW + 60_000)).toBe(true)
  expect(found.end('acme', second?.id ?? '', NOW + 60_000)).toBe(false)
  expect(finish(found.mutingOf('acme', alert, NOW + 60_000))?.id).toBe(first?.id)
  expect(found.sweep(NOW + 60_000)).toBe(true)
  expect(found.sweep(NOW + 61_000)).toBe(false)
  expect(found.sweep(NOW + DAY)).toBe(true)
  expect(finish(found.mutingOf('acme', alert, NOW + DAY))).toBeUndefined()
  expect(found.of('acme', NOW + DAY)).toEqual([])
  expect(ids(found.endedOf('acme', NOW + DAY))).toEqual([first?.id, second?.id])
  expect(found.endedOf('other', NOW + DAY)).toEqual([])
  found.sweep(NOW + 5 * DAY + 60_000)
  expect(ids(found.endedOf('acme', NOW + 5 * DAY + 60_000))).toEqual([first?.id])
})

it('a clock that is set back to before a silence does not end it, but an acknowledgement of what may fire later', () => {
  const { found, add } = silences()
  const alert = { labels: [['a', 'b']], fingerprint: '', firedMs: NOW - 2 * DAY } as const
  const acknowledged = { kind: 'acknowledgement', matchers: '["a=b"]', begins: NOW, ends: NOW + DAY } as const
  found.add({ tenant: 'other', author: 'ann', comment: '', ...acknowledged })
  add('acme', NOW + DAY)
  const isMuted = (tenant: string, nowMs: number) => finish(found.mutingOf(tenant, alert, nowMs)) !== undefined
  expect(isMuted('acme', NOW - DAY)).toBe(true)
  expect(isMuted('other', NOW - DAY)).toBe(false)
  expect(isMuted('other', NOW)).toBe(true)
})

it('of those that have ended the last thousand of each tenant stay', () => {
  const { found, add, changes } = silences()
  add('other', NOW + 1)
  for (let count = 0; count < 1_001; count++) {
    const row = add('acme', NOW + DAY, NOW + count)
    found.end('acme', row?.id ?? '', NOW + count)
  }
  found.sweep(NOW + DAY)
  expect(found.endedOf('acme', NOW + DAY)).toHaveLength(1_000)
  expect(found.endedOf('other', NOW + DAY)).toHaveLength(1)
  expect(changes.filter((change) => 'remove' in change)).toHaveLength(1)
})

it('regular expressions are looked at in steps', () => {
  const { found } = silences()
  const of = (matcher: string) =>
    found.add({
      tenant: 'acme',
      kind: 'silence',
      matchers: JSON.stringify([matcher]),
      begins: NOW,
      ends: NOW + 1,
      author: 'ann',
      comment: '',
    })
  for (let count = 0; count < 10; count++) of(`a=~"x${count}.*"`)
  const last = of('a=b')
  const steps = found.mutingOf('acme', { labels: [['a', 'b']], fingerprint: '', firedMs: NOW }, NOW)
  let count = 0
  let step = steps.next()
  for (; step.done !== true; step = steps.next()) count++
  expect(count).toBe(10)
  expect(step.value?.id).toBe(last?.id)
})
