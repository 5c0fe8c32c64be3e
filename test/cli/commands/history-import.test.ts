/** A file goes to the server in parts of whole lines; what is wrong is said with the file and the line. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Field } from '../../../protocol/monitor/value.ts'
import { rec, runCli, type Script, string, uint64 } from '../fake-cli.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'import-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

function file(text: string | Uint8Array): string {
  const path = join(directory, 'dump')
  writeFileSync(path, text)
  return path
}

const counts = (stored: bigint, tooOld = 0n, ahead = 0n, refused = 0n): Field =>
  ({
    name: 'value',
    ...rec(uint64('stored', stored), uint64('too_old', tooOld), uint64('ahead', ahead), uint64('refused', refused)),
  }) as Field
/** Each EXECUTE has a result of its own. */
const answering = (...fields: readonly Field[]): Script => answeringParts(() => fields)
const answeringParts = (fieldsOf: (part: number) => readonly Field[]): Script => {
  let transaction = 0
  return ({ of }) => {
    if (of !== 'history.import') return {}
    transaction++
    return { result: 100 + transaction, followedBy: [{ answer: rec(...fieldsOf(transaction)), transaction }] }
  }
}
const good = [string('outcome', 'ok'), string('detail', ''), counts(2n, 1n)]
const bad = (detail: string): readonly Field[] => [string('outcome', 'failed'), string('detail', detail)]
const ok = (): Script => answering(...good)
const failing = (detail: string): Script => answering(...bad(detail))
const texts = ({ producer }: Awaited<ReturnType<typeof runCli>>) =>
  producer.asked.filter(({ of }) => of === 'history.import').map(({ args }) => args)

describe('cinnabar history import', () => {
  it('sends a file, and says what became of its samples', async () => {
    const text = 'a 1 1\na 2 2\na 3 3\n# EOF\n'
    const done = await runCli(['history', 'import', file(text), '--tenant', 'acme'], ok())
    expect([done.code, done.err]).toEqual([0, []])
    expect(done.out.join('\n').split('\n')).toEqual([
      '2 samples are stored',
      'not stored, since older than samples are kept (`history.keep`): 1',
    ])
    expect(texts(done)).toEqual([{ text, tenant: 'acme' }])
    const json = await runCli(['history', 'import', file(text), '--json'], ok())
    expect(JSON.parse(json.out.join(''))).toEqual({ stored: 2, too_old: 1, ahead: 0, refused: 0 })
  })

  it('cuts it between lines, and adds up', async () => {
    const line = `a{b="${'x'.repeat(988)}"} 1 1\n`
    const text = `${line.repeat(600)}# EOF\n`
    const done = await runCli(['history', 'import', file(text)], ok())
    const parts = texts(done).map((args) => String(args['text']))
    // As much as a frame of the producer takes, which is 64 KiB here.
    expect(parts).toHaveLength(10)
    expect(parts.join('')).toBe(text)
    expect(parts.every((part) => part.endsWith('\n') && part.length <= 60 << 10)).toBe(true)
    expect(done.out.join('\n')).toContain('20 samples are stored')
  })

  it('repeats what is said of a family in each part of it', async () => {
    const line = `a_total{b="${'x'.repeat(988)}"} 1 1\n`
    const head = '# TYPE a counter\n# HELP a All "a".\n'
    const path = file(`b 1 1\n${head}${line.repeat(100)}# TYPE c gauge\nc 1 1\n# EOF\n`)
    const parts = texts(await runCli(['history', 'import', path], ok())).map((args) => String(args['text']))
    expect(parts.map((part) => part.slice(0, head.length))).toEqual([`b 1 1\n${head}`.slice(0, head.length), head])
    expect(parts.join('').replaceAll(head, '').split(line)).toHaveLength(101)
    const wrong = await runCli(
      ['history', 'import', path],
      answeringParts((part) => (part === 2 ? bad('line 4: a value is missing') : good)),
    )
    const lines = (parts[0] ?? '').split('\n').length - 1
    expect(wrong.err.join('\n')).toContain(`${path}:${lines + 2}: a value is missing`)
  })

  it('says the file and the line of what is wrong', async () => {
    const path = file('a 1 1\nb\n# EOF\n')
    const wrong = await runCli(['history', 'import', path], failing('line 2: a value is missing'))
    expect([wrong.code, wrong.err.join('\n')]).toEqual([1, expect.stringContaining(`${path}:2: a value is missing`)])
    const other = await runCli(['history', 'import', path], failing('the history is off'))
    expect([other.code, other.err.join('\n')]).toEqual([1, expect.stringContaining('the history is off')])
  })

  it.each([
    ['a file that is cut off', 'a 1 1\n', ':2: the text ends without # EOF'],
    ['an empty file', '', ':1: the text ends without # EOF'],
    [
      'a line after the end',
      `${'a 1 1\n'.repeat(10_240).slice(0, (60 << 10) - 6)}# EOF\nb 1 1\n`,
      ':10241: a line after # EOF',
    ],
    ['what is no UTF-8', Uint8Array.of(0x61, 0xff, 0x0a), 'the text is not UTF-8'],
    ['a line without an end', 'x'.repeat(300_000), ':1: a line has at most 16384 bytes'],
  ])('refuses %s', async (_, text, problem) => {
    const path = file(text)
    const { code, err } = await runCli(['history', 'import', path], ok())
    expect(code).toBe(1)
    expect(err.join('\n')).toContain(problem)
  })

  it('says so if there is no such file', async () => {
    const { code, err } = await runCli(['history', 'import', join(directory, 'none')], ok())
    expect([code, err.join('\n')]).toEqual([2, expect.stringContaining('cannot read')])
  })
})
