/** A rule reads with the rights of the role of the configuration: neither its expression nor its templates see anything else. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { done } from '../../../support/administration.ts'
import { eventually } from '../../../support/eventually.ts'
import { tokenFor } from '../../../support/publisher.ts'
import type { Json } from '../../../support/records.ts'
import { READING_RULES, RuledProducer } from '../../../support/ruled-producer.ts'

const RULES = `${READING_RULES}
      - alert: AnyName
        expr: count by (any) ({__name__=~"test_.*"}) > 1
      - alert: Recorded
        expr: test:secret > 0
`

let directory: string
let server: RuledProducer
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-rights-'))
  writeFileSync(join(directory, 'rules.yml'), RULES)
  server = await RuledProducer.start({ rules: [join(directory, '*.yml')], role: 'limited' })
  await server.producer.addUser('bob', { role: 'limited' })
})
afterEach(async () => {
  await server.stop()
  rmSync(directory, { recursive: true, force: true })
})

it('expressions and `query` of templates see what the role may read, from the next evaluation on', async () => {
  const { root } = server
  const token = await tokenFor(root, 'root', '')
  const open = (alerts: readonly Json[]): Json => alerts.find(({ labels }) => labels.alertname === 'Open')
  const before = open(await server.firing(token, 'AnyName', 'Open', 'Recorded', 'Secret'))
  expect(before).toMatchObject({ labels: { read: '1 1' }, annotations: { read: '7' } })
  await done(root, 'role.deny', { role: 'limited', command: 'COLLECT', object: 'test.secret' })
  // An evaluation that was under way has read a part of it before.
  await eventually(async () => {
    const after = open(await server.firing(token, 'Gone', 'Open'))
    expect(after).toMatchObject({ labels: { read: '0 1' }, annotations: { read: 'nothing' } })
  })
})
