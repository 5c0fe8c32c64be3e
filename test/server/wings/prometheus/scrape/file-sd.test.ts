/** Targets in files, which change while the server runs. Some of the texts are fixtures of Prometheus (discovery/file/fixtures). */
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { TargetFiles } from '../../../../../server/wings/prometheus/scrape/target-files.ts'
import { command } from '../../../../support/bytes.ts'
import { eventually } from '../../../../support/eventually.ts'
import { TestProducer } from '../../../../support/producer.ts'
import { decoded } from '../../../../support/records.ts'
import type { Seat } from '../../../../support/seat.ts'
import { ScriptedTarget, scrapeTables } from './scripted-target.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'file-sd-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

/** In one step, so that nobody sees half of it. */
function write(name: string, text: string): void {
  writeFileSync(join(directory, `${name}.new`), text)
  renameSync(join(directory, `${name}.new`), join(directory, name))
}

describe('a file', () => {
  let nowMs = 0
  const clock = { monotonicMs: () => nowMs }
  const filesOf = (...names: string[]) =>
    new TargetFiles({ paths: names.map((name) => join(directory, name)), refreshMs: 60_000, clock })
  const labelled = (name: string, labels = {}) => ({ ...labels, __meta_filepath: join(directory, name) })

  it.each([
    [
      'valid.json',
      `[
  {"targets": ["localhost:9090", "example.org:443"], "labels": {"foo": "bar"}},
  {"targets": ["my.domain"]}
]`,
    ],
    [
      'valid.yml',
      `# the YAML structure
- targets: ['localhost:9090', "example.org:443"]
  labels:
    foo: bar

- targets: ['my.domain']
`,
    ],
  ])('%s has targets with their labels', async (name, text) => {
    write(name, text)
    const files = filesOf(name)
    expect(await files.look()).toBe(true)
    expect(files.groups).toEqual([
      { targets: ['localhost:9090', 'example.org:443'], labels: labelled(name, { foo: 'bar' }) },
      { targets: ['my.domain'], labels: labelled(name) },
    ])
    expect(files.problems).toEqual([])
    expect(await files.look()).toBe(false)
  })

  it('of YAML has texts only, and may name a thing twice', async () => {
    write('a.yaml', '- &a\n  targets: [1.10]\n  labels: &l {on: yes, n: 0x10}\n- targets: [b]\n  labels: *l\n')
    const files = filesOf('a.yaml')
    await files.look()
    expect(files.problems).toEqual([])
    const labels = labelled('a.yaml', { on: 'yes', n: '0x10' })
    expect(files.groups).toEqual([
      { targets: ['1.10'], labels },
      { targets: ['b'], labels },
    ])
  })

  it.each([
    ['a.json', '[{"targets": ["a"]}, null]', 'group 2 is no table with `targets` and `labels`'],
    ['a.json', '[{"targets": ["a"]', 'JSON'],
    ['a.json', '[{"targets": [1]}]', 'group 1: `targets` is no list of texts'],
    ['a.json', '[{"targets": [], "labels": {"a": 1}}]', 'group 1: the label `a` has no text'],
    ['a.json', '[{"target": ["a"]}]', 'group 1 has the unknown key "target"'],
    ['a.json', '{}', 'it is no list of groups'],
    ['a.yml', "- targets: ['localhost:9090']\n\n- null\n", 'group 2 is no table'],
    ['a.yml', '- targets: [a\n', 'line 2'],
    ['a.yml', '- targets: [a]\n  targets: [b]\n', 'line 2: not YAML: the key "targets" stands twice'],
    ['a.yml', '- &a [*a]\n'.repeat(1_001), 'it has more than 2000 anchors and aliases'],
    ['a.yml', `- targets: [${'a,'.repeat(600_000)}b]`, 'it has more than 1048576 bytes'],
  ])('%s that cannot be read keeps the targets before: %j', async (name, text, problem) => {
    write(name, name.endsWith('json') ? '[{"targets": ["before"]}]' : '- targets: [before]')
    const files = filesOf(name)
    await files.look()
    write(name, text)
    expect(await files.look()).toBe(true)
    expect(files.problems).toEqual([expect.stringContaining(problem)])
    expect(files.groups).toEqual([{ targets: ['before'], labels: labelled(name) }])
    expect(await files.look()).toBe(false)
    write(name, '')
    await files.look()
    expect(files.groups.flatMap(({ targets }) => targets)).toEqual(name.endsWith('json') ? ['before'] : [])
  })

  it('that matches a pattern comes and goes, and is read again after its interval', async () => {
    const files = filesOf('*.json', 'single.yml')
    expect(await files.look()).toBe(true)
    expect([files.groups, files.problems]).toEqual([[], []])
    write('b.json', '[{"targets": ["b"]}]')
    write('a.json', '[{"targets": ["a"]}]')
    write('a.yml', '- targets: [other]')
    write('single.yml', '- targets: [single]')
    const targets = async () => [await files.look(), ...files.groups.flatMap(({ targets }) => targets)]
    expect(await targets()).toEqual([true, 'a', 'b', 'single'])
    rmSync(join(directory, 'a.json'))
    expect(await targets()).toEqual([true, 'b', 'single'])
    nowMs += 60_000
    expect(await targets()).toEqual([true, 'b', 'single'])
    expect(await targets()).toEqual([false, 'b', 'single'])
  })
})

describe('a server', () => {
  let target: ScriptedTarget
  let producer: TestProducer
  let seat: Seat
  beforeEach(async () => {
    target = await ScriptedTarget.start()
    target.text = 'a 1\n'
  })
  afterEach(async () => {
    await producer.stop()
    await target.stop()
  })
  const job = async () => {
    const sensors: { name: string }[] = decoded(await seat.query('producer.sensors'))
    return sensors.find(({ name }) => name === 'scrape/node')
  }
  const instances = async () =>
    decoded(await seat.query('prometheus.up')).map(({ instance }: { instance: string }) => instance)

  it('scrapes the targets of files while they change, and reports a file that is broken', async () => {
    const address = `127.0.0.1:${target.port}`
    write('a.json', JSON.stringify([{ targets: [address], labels: { rack: 'r1' } }]))
    const table = { name: 'node', file_sd: [join(directory, '*.json')], labels: { env: 'prod', rack: 'r0' } }
    producer = await TestProducer.start({ config: { scrape: scrapeTables(table) } })
    await producer.addUser('root', { role: 'admin' })
    seat = await producer.seat('root')
    expect(decoded(await seat.query('prometheus.a'))).toMatchObject([
      { env: 'prod', rack: 'r1', instance: address, job: 'node', value: 1 },
    ])
    const notices = await seat.collect('producer.notices')
    await seat.ok((seq) => command.subscribe(seq, notices))
    const changes = async (targets: number, refused = 0) =>
      eventually(async () => {
        producer.clock.advance(1_000)
        expect(await job()).toMatchObject({ counters: { targets, refused } })
      })
    write('b.json', JSON.stringify([{ targets: ['localhost:1'] }]))
    await changes(2)
    expect((await instances()).sort()).toEqual([address, 'localhost:1'])
    expect(decoded(await seat.value())).toMatchObject({ detail: expect.stringContaining('is down') })
    write('b.json', '[{')
    await changes(2, 1)
    expect(decoded(await seat.value())).toMatchObject({
      severity: 'warning',
      subject: 'scrape',
      detail: expect.stringMatching(/^job node: .*b[.]json: /),
    })
    expect(await job()).toMatchObject({ state: 'failed', detail: expect.stringContaining('b.json: ') })
    rmSync(join(directory, 'b.json'))
    await changes(1)
    expect(await job()).toMatchObject({ state: 'measuring' })
    expect(await instances()).toEqual([address])
  })

  it('shows what is known of its targets, whatever texts a file has', async () => {
    const odd = ['\ud800', 'a\n\0b', 'x'.repeat(100_000), '', 'name']
    const groups = odd.map((text) => ({
      targets: [text, '127.0.0.1:1'],
      labels: { instance: text, [text]: text, __metrics_path__: text, job: text },
    }))
    write('a.json', JSON.stringify(groups))
    producer = await TestProducer.start({
      config: { scrape: scrapeTables({ name: 'node', file_sd: [join(directory, 'a.json')] }) },
    })
    await producer.addUser('root', { role: 'admin' })
    seat = await producer.seat('root')
    await seat.query('prometheus.up')
    expect(await job()).toMatchObject({ counters: { targets: 7, refused: 3 } })
    write('a.json', '[]')
    await eventually(async () => {
      producer.clock.advance(1_000)
      expect(await job()).toMatchObject({ counters: { targets: 0, refused: 0 } })
    })
  })
})
