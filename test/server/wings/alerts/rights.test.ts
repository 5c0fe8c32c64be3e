/** A rule reads with the rights of the role of the configuration: neither its expression nor its templates see anything else. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { defaultConfig } from '../../../../server/start/config.ts'
import { done } from '../../../support/administration.ts'
import { eventually } from '../../../support/eventually.ts'
import { PublishingProducer, tokenFor } from '../../../support/publisher.ts'
import type { Json } from '../../../support/records.ts'

const EVER_MS = 36_500 * 86_400_000
/** Both metrics have the same value; the role may not read the second. */
const RULES = `groups:
  - name: g
    interval: 10s
    rules:
      - record: test:secret
        expr: test_secret
      - alert: Open
        expr: test_open > 0
        labels: { read: '{{ query "test_secret" | len }} {{ query "test_open" | len }}' }
        annotations: { read: '{{ range query "test_secret" }}{{ .Value }}{{ else }}nothing{{ end }}' }
      - alert: Secret
        expr: test_secret > 0
      - alert: AnyName
        expr: count by (any) ({__name__=~"test_.*"}) > 1
      - alert: Gone
        expr: absent(test_secret)
      - alert: Recorded
        expr: test:secret > 0
`

let directory: string
let server: PublishingProducer
let token: string
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-rights-'))
  writeFileSync(join(directory, 'rules.yml'), RULES)
  const { history, alerts } = defaultConfig()
  server = await PublishingProducer.start({
    config: {
      history: { ...history, keepMs: EVER_MS, keepRollupsMs: EVER_MS, metrics: ['test.*', 'rules.*'] },
      alerts: { ...alerts, rules: [join(directory, '*.yml')], role: 'limited' },
    },
  })
  await server.producer.addUser('bob', { role: 'limited' })
  token = await tokenFor(server.root, 'root', '')
})
afterEach(async () => {
  await server.stop()
  rmSync(directory, { recursive: true, force: true })
})

/** Time goes on until these alerts fire, and no others. Gives them. */
async function firing(...names: readonly string[]): Promise<readonly Json[]> {
  const { producer, url } = server
  let found: Json[] = []
  await eventually(async () => {
    producer.clock.advance(5_000)
    for (const name of ['test.open', 'test.secret'])
      producer.push.push(name, { type: BasicType.DOUBLE, value: 7 }, producer.clock.microseconds())
    await producer.settle()
    const answer = await fetch(`${url}/api/v1/alerts`, { headers: { authorization: `Bearer ${token}` } })
    found = ((await answer.json()) as Json).data.alerts
    expect(found.map(({ labels }: Json) => labels.alertname).sort()).toEqual(names)
  })
  return found
}

it('expressions and `query` of templates see what the role may read, from the next evaluation on', async () => {
  const { root } = server
  const open = (alerts: readonly Json[]): Json => alerts.find(({ labels }) => labels.alertname === 'Open')
  const before = open(await firing('AnyName', 'Open', 'Recorded', 'Secret'))
  expect(before).toMatchObject({ labels: { read: '1 1' }, annotations: { read: '7' } })
  await done(root, 'role.deny', { role: 'limited', command: 'COLLECT', object: 'test.secret' })
  const after = open(await firing('Gone', 'Open'))
  expect(after).toMatchObject({ labels: { read: '0 1' }, annotations: { read: 'nothing' } })
})
