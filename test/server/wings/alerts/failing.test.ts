/** A rule that reads more than it may: it is stopped, which is shown, and an alert tells people until it can be evaluated again. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { defaultConfig } from '../../../../server/start/config.ts'
import { done } from '../../../support/administration.ts'
import { eventually } from '../../../support/eventually.ts'
import { tokenFor } from '../../../support/publisher.ts'
import { decoded, type Json } from '../../../support/records.ts'
import { RuledProducer } from '../../../support/ruled-producer.ts'

/** Values come every five seconds: the rule reads 240 of them, once they are there. */
const rules = (window: string) => `groups:
  - name: g
    interval: 10s
    rules:
      - alert: Heavy
        expr: count_over_time(test_open[${window}]) > 1000
      - alert: Light
        expr: test_open > 0
`

let server: RuledProducer
beforeEach(async () => {
  server = await RuledProducer.start({}, { query: { ...defaultConfig().query, maxSamples: 100 } })
})
afterEach(() => server.stop())

const failing = async (token: string): Promise<Json | undefined> =>
  (await server.alertsOf(token)).find(({ labels }) => labels.alertname === 'CinnabarRuleFails')

it('is an alert beside those of the other rules, also over a kill', async () => {
  const token = await tokenFor(server.root, 'root', '')
  await done(server.root, 'rules.put', { name: 'a.yml', rules: rules('20m') })
  await server.firing(token, 'CinnabarRuleFails', 'Light')
  const fails = await failing(token)
  expect(fails).toMatchObject({
    labels: { file: 'put:a.yml', group: 'g', rule: 'Heavy', severity: 'warning' },
    annotations: { summary: expect.stringMatching(/^The rule Heavy of the group g cannot be evaluated: .*samples/) },
  })
  const [group] = (await server.asked(token, 'rules')).groups
  expect(group.rules.map(({ name, health }: Json) => `${name} ${health}`)).toEqual([
    'Heavy err',
    'Light ok',
    'CinnabarRuleFails ok',
  ])
  await server.crash()
  const again = await eventually(async () => {
    await server.passes()
    const alert = await failing(token)
    expect(alert).toMatchObject({ state: 'firing', activeAt: fails?.activeAt })
    return alert
  })
  expect(again?.labels).toEqual(fails?.labels)
  expect(decoded(await server.root.query('producer.alerts'))).toMatchObject([{ failing: 1, firing: 2 }])
  await done(server.root, 'rules.put', { name: 'a.yml', rules: rules('1m') })
  await server.firing(token, 'Light')
})
