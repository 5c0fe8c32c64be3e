/** The generated tables of docs/ are those of the sources, and the text beside them is complete. */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { commands } from '../protocol/monitor/commands.ts'
import { parseJsonCommands } from '../protocol/monitor/json.ts'
import { statuses } from '../protocol/monitor/status.ts'
import { documents, refresh } from './support/documents.ts'

const read = (path: string) => readFileSync(new URL(`../docs/${path}`, import.meta.url), 'utf8')

describe('the tables of docs/', () => {
  it.each(documents())('of $path are those of the sources', ({ path, text, fresh }) => {
    expect(text, `${path} is stale: run npx tsx test/support/documents.ts`).toBe(fresh)
  })

  it('hold every status and every command', () => {
    for (const name of Object.keys(statuses)) expect(read('statuses.md')).toContain(`| \`${name}\` |`)
    for (const name of Object.keys(commands)) expect(read('commands.md')).toContain(`| [${name}](#`)
  })

  it('are replaced, and the text around them is not', () => {
    const stale = 'before\n<!-- table: statuses -->\nold\n<!-- end -->\nbehind <!-- end -->'
    expect(refresh(stale)).toMatch(
      /^before\n<!-- table: statuses -->\n\n\| code \|[\s\S]+\n<!-- end -->\nbehind <!-- end -->$/,
    )
    expect(refresh(stale)).not.toContain('old')
    expect(() => refresh('<!-- table: statues -->\n<!-- end -->')).toThrow(/no table is called "statues"/)
  })
})

describe('docs/commands.md', () => {
  const sections = new Map(
    read('commands.md')
      .split(/^## /m)
      .slice(1)
      .map((section) => [section.slice(0, section.indexOf('\n')), section]),
  )

  it('has a section for every command, and for nothing else', () => {
    expect([...sections.keys()].sort()).toEqual(Object.keys(commands).sort())
  })

  it.each(Object.keys(commands))('shows %s as JSON that parses', (name) => {
    const example = /^```json\n(.+)\n```$/m.exec(sections.get(name)!)?.[1]
    expect(parseJsonCommands(example!)[0]!.cmd).toBe(name)
  })
})

describe('docs/decisions/', () => {
  const files = readdirSync(new URL('../docs/decisions/', import.meta.url)).sort()

  it('are numbered from 1 on, without a number that is used twice or left out', () => {
    const numbers = files.map((name) => name.slice(0, 5))
    expect(numbers).toEqual(files.map((_, at) => `${String(at + 1).padStart(4, '0')}-`))
  })

  it.each(files)('%s has its number in its title', (name) => {
    expect(read(`decisions/${name}`)).toMatch(new RegExp(`^# ${Number(name.slice(0, 4))}\\. .`))
  })
})

describe('docs/console.md', () => {
  const [, table = ''] = /<!-- names -->\n([\s\S]*?)<!-- end -->/.exec(read('console.md')) ?? []
  const folder = new URL('../console/', import.meta.url)
  const sources = readdirSync(folder, { recursive: true }).filter((path) => /[.]tsx?$/.test(String(path)))
  const source = sources.map((path) => readFileSync(new URL(String(path), folder), 'utf8')).join('\n')
  const families = 'producer|host|alert|notify|board|channel|control|user|tenant|role|token|sensor|config|storage'
  /** Names of metrics and controls in quotes; `<family>.list` is made of a family. */
  const used = new Set([
    ...[...source.matchAll(new RegExp(`['"](?:(?:${families})(?:[.][a-z_]+)+|[*][.]host[.]up)['"]`, 'g'))].map(
      ([quoted]) => quoted.slice(1, -1),
    ),
    ...[...source.matchAll(/useListing\(\w+, '(\w+)'/g)].map(([, family]) => `${family}.list`),
    ...[...source.matchAll(/consumer[.]evaluate\(/g)].map(() => 'producer.history.query'),
  ])

  it('names every metric and control that the console uses, and no other', () => {
    expect(used.size).toBeGreaterThan(20)
    const named = [...table.matchAll(/^\| (`.+?`) \|/gm)].flatMap(([, names = '']) => names.slice(1, -1).split('`, `'))
    expect(named.toSorted()).toEqual([...used].toSorted())
  })

  it('has a row for every view of the rail', () => {
    const views = [...source.matchAll(/\{ view: '(\w+)', title: '(\w+)'/g)]
    expect(views.length).toBeGreaterThan(5)
    for (const [, view, title] of views)
      expect(read('console.md')).toMatch(new RegExp(`^\\| ${title} \\| \`#/${view}\\b`, 'm'))
  })
})

describe('docs/architecture.md', () => {
  const text = read('architecture.md')
  const namesIn = (folder: string) => readdirSync(new URL(`../${folder}/`, import.meta.url))

  it('names every folder of the tree', () => {
    const folders = readdirSync(new URL('..', import.meta.url), { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && !/^(\.|dist$|node_modules$)/.test(entry.name))
      .map(({ name }) => name)
    expect(folders.length).toBeGreaterThan(6)
    for (const folder of folders) expect(text).toContain(`\`${folder}/\``)
  })

  it('names every file of the channel queue', () => {
    for (const file of namesIn('server/kernel/channels')) expect(text).toContain(`\`${file}\``)
  })

  it('names every room of the kernel, in the order of who may import whom', () => {
    const order = /^core < .+ < producer$/m.exec(text)?.[0].split(' < ') ?? []
    expect(order.sort()).toEqual(namesIn('server/kernel').sort())
  })

  it('draws every part of the server, and every wing', () => {
    const drawing = /## The parts of the server\n\n```text\n(.+?)```/s.exec(text)?.[1] ?? ''
    const drawn = new Set(drawing.match(/\w+/g))
    expect([...namesIn('server'), ...namesIn('server/wings')].filter((name) => !drawn.has(name))).toEqual([])
  })
})
