/** `cinnabar rules apply`: what it shows of what would change, and what it has the server do. */
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Field, Value } from '../../../protocol/monitor/value.ts'
import { list, rec, runCli, type Script, string } from '../fake-cli.ts'

const textOf = (...rules: readonly string[]): string =>
  `groups:\n  - name: g\n    rules:\n${rules.map((rule) => `      - { ${rule} }\n`).join('')}`
const BEFORE = textOf('alert: Same, expr: up == 0', 'alert: Other, expr: up == 0', 'record: gone, expr: up')
const AFTER = textOf('alert: Same, expr: up == 0', 'alert: Other, expr: up == 1', 'record: new, expr: up')

let directory: string
let ran: string[]
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-apply-'))
  ran = []
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

/** A server that has these files. */
const serverWith = (files: Readonly<Record<string, { readonly text: string; readonly problem?: string }>>): Script => {
  const records = Object.entries(files).map(([name, { text, problem = '' }]) => {
    const digest = `sha256:${createHash('sha256').update(text).digest('hex')}`
    return [string('name', name), string('digest', digest), string('problem', problem)]
  })
  let last = 5
  return ({ name, of, args }) => {
    if (name !== 'EXECUTE') return {}
    const file = String(args['name'] ?? '')
    if (of !== 'rules.files') ran.push(`${of} ${file}`)
    const text: Value = { type: string('', '').type, value: files[file]?.text ?? '' } as Value
    const value = { name: 'value', ...(file === '' ? list(...records) : text) } as Field
    const answer = rec(string('outcome', 'ok'), string('detail', ''), ...(of === 'rules.files' ? [value] : []))
    last++
    return { result: last, followedBy: [{ answer, transaction: last }] }
  }
}

const apply = async (script: Script, ...words: readonly string[]) => {
  const { code, out, err } = await runCli(['rules', 'apply', directory, ...words], script)
  return { code, out, err }
}

it('shows what is new, has changed and is left out, and puts the files in force; what is the same stays', async () => {
  writeFileSync(join(directory, 'a.yml'), AFTER)
  writeFileSync(join(directory, 'b.yaml'), textOf('alert: Added, expr: up'))
  writeFileSync(join(directory, 'same.yml'), BEFORE)
  writeFileSync(join(directory, 'notes.txt'), 'no rules')
  const server = serverWith({ 'a.yml': { text: BEFORE }, 'same.yml': { text: BEFORE }, 'old.yml': { text: BEFORE } })
  const lines = ['a.yml: changed', '  ~ g  Other', '  + g  new', '  - g  gone', 'b.yaml: new', '  + g  Added']
  expect(await apply(server, '--dry-run')).toMatchObject({ code: 0, out: lines })
  expect(ran).toEqual([])
  expect(await apply(server)).toMatchObject({ code: 0, out: lines })
  expect(ran.splice(0)).toEqual(['rules.put a.yml', 'rules.put b.yaml'])
  const removed = ['old.yml: removed', '  - g  Same', '  - g  Other', '  - g  gone']
  expect(await apply(server, '--prune', '--yes')).toMatchObject({ code: 0, out: [...lines, ...removed] })
  expect(ran).toEqual(['rules.put a.yml', 'rules.put b.yaml', 'rules.remove old.yml'])
})

it('removes nothing without a yes, and puts nothing of files with a mistake', async () => {
  writeFileSync(join(directory, 'a.yml'), AFTER)
  const server = serverWith({ 'old.yml': { text: BEFORE } })
  expect((await apply(server, '--prune')).code).toBe(2)
  writeFileSync(join(directory, 'b.yml'), 'groups: [{ name: g, rules: [{ alert: A }] }]')
  const { code, err } = await apply(server)
  expect(code).toBe(1)
  expect(err.join()).toContain('b.yml:1: group "g", rule "A": it needs an `expr`')
  expect(ran).toEqual([])
})

it('puts a file that was stopped again, as it is', async () => {
  writeFileSync(join(directory, 'a.yml'), BEFORE)
  const server = serverWith({ 'a.yml': { text: BEFORE, problem: 'its author is gone' } })
  expect(await apply(server)).toMatchObject({ code: 0, out: ['a.yml: put again'] })
  expect(ran).toEqual(['rules.put a.yml'])
  expect((await apply(serverWith({ 'a.yml': { text: BEFORE } }))).err).toEqual(['nothing changes'])
})
