/** A server whose tenant has rules that take more time than its quota allows: the file that takes most of it is stopped, and no other. */
import { afterEach, expect, it } from 'vitest'
import { done } from '../support/administration.ts'
import { eventually } from '../support/eventually.ts'
import { decoded, type Json } from '../support/records.ts'
import { ServerProcess } from '../support/server-process.ts'

const rule = (name: string, expr: string) =>
  `groups:\n  - name: g\n    interval: 1s\n    rules:\n      - alert: ${name}\n        expr: ${expr}\n`
/** Millions of samples, whatever the history has. */
const HEAVY = rule('Heavy', 'max_over_time(quantile_over_time(0.5, (vector(time()) % 7)[1h:1s])[3h:10s]) >= 0')
const LIGHT = rule('Light', 'vector(1)')

let server: ServerProcess | undefined
afterEach(async () => {
  await server?.end('SIGKILL')
  await server?.remove()
})

it('is stopped, shown and an alert, and goes on when the quota is raised', async () => {
  const bounded = new ServerProcess('[alerts]\nbuiltin = false\ninterval = "1s"\n[quota]\nrule_seconds_per_hour = 1\n')
  server = bounded
  await bounded.start()
  const seat = await bounded.seat()
  const names = async (): Promise<string[]> =>
    decoded(await seat.query('producer.alerts.active')).map(({ labels }: Json) => labels.alertname)
  await done(seat, 'rules.put', { name: 'light.yml', rules: LIGHT })
  await done(seat, 'rules.put', { name: 'heavy.yml', rules: HEAVY })
  await eventually(async () => expect((await names()).sort()).toEqual(['CinnabarRulesStopped', 'Light']))
  const files: Json[] = await done(seat, 'rules.files')
  expect(files.map(({ name, problem }) => [name, problem])).toEqual([
    ['heavy.yml', expect.stringContaining('raise its quota `rule_seconds_per_hour`')],
    ['light.yml', ''],
  ])
  const [figures] = decoded(await seat.query('producer.alerts')) as Json[]
  expect(figures).toMatchObject({ stopped: 1, used_up: 1 })
  expect(Number(figures?.worked_ms)).toBeGreaterThanOrEqual(1_000)
  await done(seat, 'tenant.set', { tenant: 'default', rule_seconds_per_hour: 0n })
  await eventually(async () => expect((await names()).sort()).toEqual(['Heavy', 'Light']))
})
