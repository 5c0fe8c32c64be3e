/** `cinnabar rules`: what it prints of files. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { runCli } from '../fake-cli.ts'

const CASES = new URL('../../cases/rules/', import.meta.url).pathname

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-rules-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

it('checks files, and shows the problems of one beside the others', async () => {
  const wrong = join(directory, 'wrong.yml')
  writeFileSync(wrong, 'groups:\n  - name: "g\\u001b"\n    rules: [{alert: A}]\n')
  const { code, out, err } = await runCli(['rules', 'check', `${CASES}states.yml`, wrong])
  expect(code).toBe(1)
  expect(out).toEqual([`${CASES}states.yml: 2 groups, 6 rules`])
  expect(err.join('\n')).toContain(`${wrong}:3: group "g\\u001b", rule "A": it needs an \`expr\``)
})

it('says of a file that Prometheus would refuse it', async () => {
  const { code, out } = await runCli(['rules', 'check', `${CASES}lapses.yml`])
  const remark = 'Prometheus refuses this file: `recover` and `no_data` are of Cinnabar'
  expect({ code, out }).toEqual({ code: 0, out: [`${CASES}lapses.yml: 1 group, 6 rules; ${remark}`] })
})

it('tests rules', async () => {
  const { code, out } = await runCli(['rules', 'test', `${CASES}states.test.yml`])
  expect({ code, out }).toEqual({ code: 0, out: [`${CASES}states.test.yml: 1 test passed`] })
})
