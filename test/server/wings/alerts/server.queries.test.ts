/** Rules in a server while people ask it for as much as they may: none of them waits. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import type { RememberedHistory } from '../../../../server/kit/history.ts'
import { defaultConfig } from '../../../../server/start/config.ts'
import { eventually } from '../../../support/eventually.ts'
import { PublishingProducer, tokenFor } from '../../../support/publisher.ts'
import { decoded, type Json } from '../../../support/records.ts'

const EVER_MS = 36_500 * 86_400_000
/** Queries of a tenant at the same time. */
const AT_ONCE = 2
const RULES = `groups:
  - name: load
    interval: 10s
    rules:
      - alert: High
        expr: test_a > 10
`

let directory: string
let server: PublishingProducer
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-alerts-'))
  writeFileSync(join(directory, 'rules.yml'), RULES)
  server = await PublishingProducer.start({
    config: {
      history: { ...defaultConfig().history, keepMs: EVER_MS, keepRollupsMs: EVER_MS, metrics: ['test.*'] },
      alerts: { ...defaultConfig().alerts, builtin: false, rules: [join(directory, '*.yml')] },
      query: { ...defaultConfig().query, maxConcurrent: AT_ONCE },
    },
  })
})
afterEach(async () => {
  await server.stop()
  rmSync(directory, { recursive: true, force: true })
})

/** Queries of people get nothing of the history until `released`; `begun` is called with each that asks it for something. */
function hold(released: Promise<void>, begun: () => void): void {
  const { sources } = server.producer.server.parts
  const history = sources.find(({ remembered }) => remembered !== undefined)?.remembered
  if (history === undefined) throw new Error('there is no history')
  const select = history.select.bind(history)
  const held: RememberedHistory['select'] = async function* (...asked) {
    begun()
    await released
    yield* select(...asked)
  }
  const value: RememberedHistory['select'] = (reader, selection) =>
    selection.isRecurring === true ? select(reader, selection) : held(reader, selection)
  Object.defineProperty(history, 'select', { value })
}

const figures = async (): Promise<Json> => decoded(await server.root.query('producer.alerts'))[0]

/** A second passes in which a value comes. */
async function second(value: number): Promise<void> {
  const { producer } = server
  producer.clock.advance(1_000)
  producer.push.push('test.a', { type: BasicType.DOUBLE, value }, producer.clock.microseconds())
  await producer.settle()
}

it('rules are evaluated at their times while all queries of a tenant run, and others wait for a turn in vain', async () => {
  const token = await tokenFor(server.root, 'root', '')
  const ask = async (): Promise<number> => {
    const answer = await fetch(`${server.url}/api/v1/query?query=test_a`, {
      headers: { authorization: `Bearer ${token}` },
    })
    await answer.text()
    return answer.status
  }
  let begun = 0
  let release = (): void => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  hold(released, () => {
    begun++
  })
  const answers = Array.from({ length: 3 * AT_ONCE }, ask)
  await eventually(() => expect(begun).toBe(AT_ONCE))
  for (let seconds = 0; seconds < 60; seconds++) {
    await second(seconds < 30 ? 1 : 11)
    // The clock stands still until whatever is due is done.
    await eventually(async () => {
      await server.producer.settle()
      expect(await figures()).toMatchObject({ lag_ms: 0, failures: 0, missed: 0 })
    })
  }
  expect(await figures()).toMatchObject({ evaluations: 6, firing: 1 })
  expect(begun).toBe(AT_ONCE)
  release()
  expect((await Promise.all(answers)).sort()).toEqual([200, 200, 503, 503, 503, 503])
})
