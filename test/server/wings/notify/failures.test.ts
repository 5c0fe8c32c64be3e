/** A notifier that fails is an alert, of which the others tell. */
import { beforeEach, expect, it } from 'vitest'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import type { NotifiedAlert } from '../../../../server/wings/notify/alert.ts'
import { noneTold } from '../../../../server/wings/notify/counts.ts'
import { tellOfFailures } from '../../../../server/wings/notify/failures.ts'
import type { InForce } from '../../../../server/wings/notify/in-force.ts'

const MINUTE = 60_000
const SAID =
  'alertname=CinnabarNotifierFails notifier=one severity=warning summary=The notifier one (ntfy+https://one.example) tells nobody: the receiver answered 503'
let nowMs: number
let told: string[]

interface Standing {
  failingSinceMs: number | undefined
}

/** One that takes everything that it is told. */
function inForce(name: string): InForce & Standing {
  const known = new Map<string, NotifiedAlert>()
  return {
    table: { name, tenant: 'default', url: { shown: `ntfy+https://${name}.example` } },
    counts: { ...noneTold(), delivered: 1 },
    problem: 'the receiver answered 503',
    failingSinceMs: undefined,
    failures: () => known.values(),
    observe: (alert: NotifiedAlert) => {
      const { labels, state, annotations, fingerprint } = alert
      expect(fingerprint).toMatch(/^[0-9a-f]{16}$/)
      const texts = [...labels, ...annotations].map(([label, text]) => `${label}=${text}`)
      if (state === 'firing') known.set(fingerprint, alert)
      else known.delete(fingerprint)
      told.push(`${name}: ${state} ${texts.join(' ')}`)
    },
  } as never
}

beforeEach(() => {
  nowMs = 1_700_000_000_000
  told = []
})

it('the others hear of it after five minutes, and when it works again', () => {
  const [one, two] = [inForce('one'), inForce('two')] as const
  one.failingSinceMs = nowMs
  nowMs += 5 * MINUTE - 1
  finish(tellOfFailures([one, two], nowMs))
  expect(told).toEqual([])
  two.failingSinceMs = nowMs
  nowMs++
  finish(tellOfFailures([one, two], nowMs))
  expect(told).toEqual([`two: firing ${SAID}`])
  told = []
  one.failingSinceMs = undefined
  finish(tellOfFailures([one, two], nowMs))
  expect(told).toEqual([`two: resolved ${SAID}`])
})

it('where nothing fails, nobody is told anything', () => {
  const all = ['one', 'two', 'three'].map(inForce)
  finish(tellOfFailures(all, nowMs))
  expect(told).toEqual([])
})

it('one that has told nothing since the start does not count as working', () => {
  const [one, two] = [inForce('one'), inForce('two')] as const
  one.failingSinceMs = nowMs - 5 * MINUTE
  finish(tellOfFailures([one, two], nowMs))
  one.failingSinceMs = undefined
  one.counts.delivered = 0
  told = []
  finish(tellOfFailures([one, two], nowMs))
  expect(told).toEqual([])
})

it('one that fails goes on, though another one of its name works', () => {
  const [stopped, configured, two] = [inForce('one'), inForce('one'), inForce('two')] as const
  stopped.failingSinceMs = nowMs - 5 * MINUTE
  for (let times = 0; times < 2; times++) finish(tellOfFailures([configured, stopped, two], nowMs))
  expect(new Set(told)).toEqual(new Set([`two: firing ${SAID}`]))
})

it('what was told of one that is gone has ended', () => {
  const [one, two] = [inForce('one'), inForce('two')] as const
  one.failingSinceMs = nowMs - 5 * MINUTE
  finish(tellOfFailures([one, two], nowMs))
  told = []
  finish(tellOfFailures([two], nowMs))
  expect(told).toEqual([`two: resolved ${SAID}`])
})

it('each step tells of one notifier, or tells one, and no alert has all of them looked at', () => {
  const names = Array.from({ length: 30 }, (_, at) => `n${at}`)
  let looked = 0
  const all = names.map((name) => {
    const one = inForce(name)
    one.failingSinceMs = nowMs - 5 * MINUTE
    const { table } = one
    return Object.defineProperty(one, 'table', {
      get() {
        looked++
        return table
      },
    })
  })
  const steps = (): number[] => {
    const counts: number[] = []
    for (const telling = tellOfFailures(all, nowMs); ; ) {
      const before = told.length
      const { done } = telling.next()
      if (done === true) return counts
      counts.push(told.length - before)
    }
  }
  expect(steps()).toEqual([...names.map(() => 29), ...names.map(() => 0)])
  expect(looked).toBeLessThan(5 * names.length ** 2)
  for (const one of all) one.failingSinceMs = undefined
  expect(steps()).toEqual([...names.map(() => 0), ...names.map(() => 29)])
})
