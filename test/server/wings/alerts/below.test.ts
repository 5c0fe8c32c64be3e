/** Alerts of a server below: a consumer above binds them as it binds any metric, and a rule above alerts of them, so that its notifiers tell. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { defaultConfig } from '../../../../server/start/config.ts'
import { args, command, str, type } from '../../../support/bytes.ts'
import { decoded, type Json } from '../../../support/records.ts'
import { Tree } from '../../../support/tree.ts'

const EVER_MS = 36_500 * 86_400_000
const RECORDED = {
  ...defaultConfig().history,
  keepMs: EVER_MS,
  keepRollupsMs: EVER_MS,
  resolutionMs: 0,
  metrics: ['test.*', 'rules.*'],
}
const LOWER = `groups:
  - name: lower
    interval: 10s
    rules:
      - alert: High
        expr: test_a > 10
        labels: { severity: page }
`
const UPPER = `groups:
  - name: upper
    interval: 10s
    rules:
      - alert: Below
        expr: max without (alertstate) (ALERTS{alertstate="firing", alertname!="Below", producer!=""})
        labels: { alert: '{{ $labels.alertname }}' }
`

let directory: string
let tree: Tree
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-below-'))
})
afterEach(async () => {
  await tree.stop()
  rmSync(directory, { recursive: true, force: true })
})

it('are values of `alert` with the label `producer`, and series of the history over which rules are evaluated', async () => {
  const [lower, upper] = [join(directory, 'lower.yml'), join(directory, 'upper.yml')]
  writeFileSync(lower, LOWER)
  writeFileSync(upper, UPPER)
  tree = await Tree.start({
    history: { lower: RECORDED, upper: { ...RECORDED, below: true } },
    rules: { lower, upper },
  })
  await tree.connected()
  await tree.upper.addUser('ann')
  const ann = await tree.upper.seat('ann')
  const channel = await ann.defChannel()
  await ann.setChannel(channel)
  for (const producer of [[], [['producer', type.string, str('*')] as const]]) {
    const id = await tree.inTime(ann.collect('alert', args(...producer)))
    await tree.inTime(ann.ok((seq) => command.subscribe(seq, id, channel)))
  }
  const reported: Json[] = []
  await tree.until(() => {
    const { clock, push } = tree.lower
    push.push('test.a', { type: BasicType.DOUBLE, value: 11 }, clock.microseconds())
    reported.push(...ann.rest().flatMap((message) => (message.kind === 'value' ? [decoded(message)] : [])))
    // That of another server has its labels in the record.
    const found = reported.map(({ producer, value, ...labels }) =>
      value.state === undefined ? { producer, ...value } : { ...labels, value },
    )
    const firing = { severity: 'page', host: 'h1', value: expect.objectContaining({ state: 'firing' }) }
    expect(found).toContainEqual(expect.objectContaining({ ...firing, producer: 'east', alertname: 'High' }))
    expect(found).toContainEqual(expect.objectContaining({ ...firing, alertname: 'Below', alert: 'High' }))
  })
})
