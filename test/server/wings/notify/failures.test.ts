/** A notifier that fails is an alert, of which the others tell. */
import { beforeEach, expect, it } from 'vitest'
import type { NotifiedAlert } from '../../../../server/wings/notify/alert.ts'
import { noneTold } from '../../../../server/wings/notify/counts.ts'
import { endFailuresOfOthers, tellOfFailures } from '../../../../server/wings/notify/failures.ts'
import type { InForce } from '../../../../server/wings/notify/in-force.ts'

const MINUTE = 60_000
let nowMs: number
let told: string[]
let known: NotifiedAlert[]

interface Standing {
  failingSinceMs: number | undefined
}

function inForce(name: string, tenant = 'default'): InForce & Standing {
  return {
    table: { name, tenant, url: { shown: `ntfy+https://${name}.example` } },
    counts: { ...noneTold(), delivered: 1 },
    groups: { alerts: () => known },
    problem: 'the receiver answered 503',
    failingSinceMs: undefined,
    observe: ({ labels, state, annotations, fingerprint }: NotifiedAlert) => {
      expect(fingerprint).toMatch(/^[0-9a-f]{16}$/)
      const texts = [...labels, ...annotations].map(([label, text]) => `${label}=${text}`)
      told.push(`${tenant}/${name}: ${state} ${texts.join(' ')}`)
    },
  } as never
}

beforeEach(() => {
  nowMs = 1_700_000_000_000
  told = []
  known = []
})

it('the others of its tenant hear of it after five minutes, and when it works again', () => {
  const [one, two, foreign] = [inForce('one'), inForce('two'), inForce('three', 'other')] as const
  const running = [one, two, foreign]
  one.failingSinceMs = nowMs
  nowMs += 5 * MINUTE - 1
  tellOfFailures([one, foreign], nowMs)
  tellOfFailures(running.slice(0, 1), nowMs)
  expect(told).toEqual([])
  two.failingSinceMs = nowMs
  nowMs++
  tellOfFailures(running, nowMs)
  const said =
    'alertname=CinnabarNotifierFails notifier=one severity=warning summary=The notifier one (ntfy+https://one.example) tells nobody: the receiver answered 503'
  expect(told).toEqual([`default/two: firing ${said}`])
  told = []
  one.failingSinceMs = undefined
  tellOfFailures(running, nowMs)
  expect(told).toEqual([`default/two: resolved ${said}`])
})

it('one that has told nothing since the start does not count as working', () => {
  const [one, two] = [inForce('one'), inForce('two')] as const
  one.counts.delivered = 0
  two.counts.delivered = 0
  tellOfFailures([one, two], nowMs)
  expect(told).toEqual([])
})

it('what was told of one that is gone has ended', () => {
  const [one, two] = [inForce('one'), inForce('two')] as const
  one.failingSinceMs = nowMs - 5 * MINUTE
  const observed: NotifiedAlert[] = []
  tellOfFailures([one, { ...two, observe: (alert) => void observed.push(alert) }], nowMs)
  known = observed
  told = []
  endFailuresOfOthers([one, two], nowMs)
  expect(told).toEqual([])
  endFailuresOfOthers([two], nowMs)
  expect(told).toHaveLength(1)
  expect(told[0]).toMatch(/^default\/two: resolved alertname=CinnabarNotifierFails notifier=one /)
})
