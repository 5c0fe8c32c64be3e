/**
 * What the documents promise is offered, and what is offered is documented: capabilities, the catalogue with the fields of
 * every `producer.*` metric, and the controls of a running server are compared with docs/protocol/monitoring.md; and no page
 * says of anything that is offered that it is not.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { XdrReader } from '../../protocol/bytes/reader.ts'
import { type CommandName, commands } from '../../protocol/monitor/commands.ts'
import { BasicType, GapReason, NoticeCode } from '../../protocol/monitor/constants.ts'
import { jsonCommandArguments, jsonCommandName, parseJsonCommands, typeName } from '../../protocol/monitor/json.ts'
import { type Message, readMessage } from '../../protocol/monitor/message.ts'
import { StatusCode } from '../../protocol/monitor/status.ts'
import { type Field, readTyped, type Value } from '../../protocol/monitor/value.ts'
import { TlsFiles } from '../../server/edge/tls/files.ts'
import { dialPorts } from '../../server/kernel/config/destination.ts'
import { defaultConfig } from '../../server/start/config.ts'
import { askFor, done } from '../support/administration.ts'
import { args, command, status, str, type, u32, u64 } from '../support/bytes.ts'
import { Authority, OperatorDirectory } from '../support/certificates.ts'
import { connectSecurable, secure, wrapped } from '../support/layers.ts'
import { TestProducer } from '../support/producer.ts'
import { RawPeer } from '../support/raw-peer.ts'
import { decoded } from '../support/records.ts'
import type { Seat, ValueMessage } from '../support/seat.ts'
import { TestCluster } from '../support/test-cluster.ts'
import { SlowSensor } from '../support/test-sensor.ts'
import { pages, ROOT } from './page.ts'
import {
  alertsValue,
  alertValues,
  expressionValues,
  historyValue,
  labelsValues,
  notifierValues,
  queriesValue,
  selectedValue,
} from './remembered-values.ts'

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')
const protocol = read('docs/protocol/monitoring.md')

/** The rows of the tables of a text whose head matches, each a list of cells. */
function rowsBelow(text: string, head: RegExp): string[][] {
  const found: string[][] = []
  let isWanted = false
  let before = ''
  for (const line of text.split('\n')) {
    const isRow = line.startsWith('|')
    if (isRow && !before.startsWith('|')) isWanted = head.test(line)
    else if (isRow && isWanted && !/^[|-]+$/.test(line)) {
      found.push(
        line
          .split('|')
          .slice(1, -1)
          .map((cell) => cell.trim()),
      )
    }
    before = line
  }
  return found
}

/** A section of the page, by its number: `12`, `3.2`. */
function section(number: string): string {
  const found = new RegExp(`^##+ ${number.replaceAll('.', '\\.')} [\\s\\S]*?(?=^##+ \\d|$(?![\\s\\S]))`, 'm').exec(
    protocol,
  )
  if (found === null) throw new Error(`the page has no section ${number}`)
  return found[0]
}

const match = (pattern: string) => args(['match', type.string, str(pattern)])
/** The first number of a text: `67,108,864; ...`. */
const numberIn = (text = ''): number => Number(/[\d,]+/.exec(text)?.[0].replaceAll(',', ''))
const quoted = (text = ''): string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)
const firstCells = (rows: readonly string[][]): string[] => rows.flatMap(([cell]) => quoted(cell))
const sorted = (names: Iterable<string>): string[] => [...new Set(names)].sort()

/** A metric that has details in the catalogue. */
class DetailedSensor extends SlowSensor {
  override readonly family = 'detailed.'
  override metrics() {
    const [metric] = [...super.metrics()]
    const details = (): Field[] => [{ name: 'anything', type: BasicType.STRING, value: 'else' }]
    return metric === undefined ? [] : [{ ...metric, name: 'detailed.value', details }]
  }
}

const directory = new OperatorDirectory()
const offered = { auth: new Set<string>(), layer: new Set<string>(), extension: new Set<string>() }
let producer: TestProducer
let boss: Seat

beforeAll(async () => {
  producer = await TestProducer.start({
    sensors: (hub) => hub.add(new DetailedSensor()),
    cluster: new TestCluster(),
  })
  await producer.addUser('boss', { role: 'admin' })
  boss = await producer.seat('boss')
  const authority = await Authority.make()
  const certificate = await authority.client('boss')
  const files = directory.server(await authority.server())
  const clientCa = directory.write('client-ca.pem', authority.cert)
  const tls = TlsFiles.open({ ...files, clientCa, clientRevoked: undefined }, producer.clock) as TlsFiles
  const plain = new RawPeer(connectSecurable(producer, tls))
  await plain.until('caps')
  const inside = new RawPeer(await secure(await wrapped(plain, 'tls'), { ca: authority.cert, ...certificate }))
  await inside.until('caps')
  for (const { log } of [boss.peer, plain, inside]) {
    for (const message of log) if (message.kind === 'caps') take(readMessage(new XdrReader(message.bytes)))
  }
})
afterAll(async () => {
  await producer.stop()
  directory.remove()
})

function take(message: Message): void {
  if (message.kind !== 'caps') return
  for (const list of ['auth', 'layer', 'extension'] as const) {
    for (const name of message.caps[list]) offered[list].add(name)
  }
}

describe('docs/protocol/monitoring.md', () => {
  it('has every command, status, reason of a GAP and code of a NOTICE, and no other', () => {
    const rows = rowsBelow(section('2'), /^\| cmd /)
    expect(rows.map(([code, name]) => [name, Number(code)])).toEqual(
      Object.entries(commands).map(([name, { code }]) => [name, code]),
    )
    const named = [...section('4').matchAll(/\| (\d+) ([A-Z_]+)(?= |$)/g)].map(([, code, name]) => [name, Number(code)])
    expect(named).toEqual(Object.entries(StatusCode))
    const reasons = rowsBelow(section('3.4'), /^\| reason /).map(([code, name]) => [quoted(name)[0], Number(code)])
    expect(reasons).toEqual(Object.entries(GapReason))
    const codes = rowsBelow(section('3.5'), /^\| code /).map(([code, name]) => [quoted(name)[0], Number(code)])
    expect(codes).toEqual(Object.entries(NoticeCode))
  })

  it('has every method of AUTH and every layer, and no other', () => {
    expect(sorted(firstCells(rowsBelow(section('11'), /^\| method /)))).toEqual(sorted(offered.auth))
    expect(sorted(firstCells(rowsBelow(section('12'), /^\| layer /)))).toEqual(sorted(offered.layer))
  })

  it('has every extension, and none that the server could not offer', () => {
    const [row = []] = rowsBelow(section('3.2'), /^\| name /).filter(([name]) => name === '`extension`')
    const named = quoted(row[2])
    for (const name of offered.extension) expect(named).toContain(name)
    const sources = readdirSync(join(ROOT, 'server/kernel/sessions')).map((file) =>
      read(join('server/kernel/sessions', file)),
    )
    for (const name of named) expect(sources.some((text) => text.includes(`'${name}'`)) ? name : undefined).toBe(name)
  })

  it('has every scheme of DEF_CHANNEL with its port, and no other', () => {
    const text = section('14')
    expect(sorted(quoted(text).flatMap((name) => /^([\w+]+):\/\//.exec(name)?.[1] ?? []))).toEqual(
      sorted(Object.keys(dialPorts)),
    )
    const ports = rowsBelow(text, /^\| argument, part/).find(([part]) => part === 'port')?.[1] ?? ''
    for (const port of Object.values(dialPorts)) expect(ports).toContain(` ${port} for `.trimStart())
  })

  it('has every control of the server with its arguments, and no other', async () => {
    const rows = rowsBelow(section('10'), /^\| control /).map(([name, list]) => [quoted(name)[0], list])
    const controls = decoded(await boss.query('producer.controls')) as { name: string; parameters: Parameter[] }[]
    expect(rows).toEqual(controls.map(({ name, parameters }) => [name, parameters.map(parameterOf).join(', ') || '-']))
  })

  it('has the arguments of every control', async () => {
    const rows = rowsBelow(section('10'), /^\| argument /)
    expect(firstCells(rows)).toEqual(['idempotency_key', 'dry_run', 'on_behalf_of', 'repeat_only'])
    const list = args(
      ['channel', type.uint32, u32(0)],
      ['dry_run', type.boolean, u32(1)],
      ['idempotency_key', type.string, str('k')],
    )
    expect((await boss.ask((seq) => command.execute(seq, 'channel.purge', list))).status).toBe(status.OK)
    expect(decoded(await boss.value())).toMatchObject({ outcome: 'dry-run' })
  })

  it.each(rowsBelow(section('9.1'), /^\| argument /).slice(0, 2))(
    'bounds %s (%s) as the server does',
    async (name, word, _, bounds = '') => {
      const [least, most] = [...bounds.matchAll(/[\d,]+/g)].map(([digits]) => Number(digits.replaceAll(',', '')))
      const [argument = ''] = quoted(name)
      expect(word).toBe('UINT32')
      const statusOf = async (value: number) => {
        const list = args([argument, type.uint32, u32(value)])
        return (await boss.ask((seq) => command.collect(seq, 'host.load.one', list))).status
      }
      expect(await Promise.all([least! - 1, least!, most!, most! + 1].map(statusOf))).toEqual([
        status.INVALID_ARGUMENT,
        status.OK,
        status.OK,
        status.INVALID_ARGUMENT,
      ])
    },
  )

  it('has the defaults of the arguments of every metric', async () => {
    const [interval = [], deadline = []] = rowsBelow(section('9.1'), /^\| argument /)
    expect(numberIn(interval[2])).toBe(defaultConfig().host.intervalMs)
    const id = await boss.ok((seq) => command.query(seq, 'slow.value'))
    producer.clock.advance(numberIn(deadline[2]) - 1)
    await producer.settle()
    expect(boss.rest().filter(({ kind }) => kind === 'value')).toEqual([])
    producer.clock.advance(1)
    expect(await boss.value()).toMatchObject({ metric: id, type: BasicType.VOID })
  })

  it('has the settings of a channel with their types and defaults', async () => {
    const rows = rowsBelow(section('8.11'), /^\| argument /)
    const shown = rows.map(([name, word, unless]) => [quoted(name)[0], word, unless])
    const [configure] = decoded(await boss.query('producer.controls', match('channel.configure')))
    const parameters = (configure.parameters as Parameter[]).filter(({ name }) => name !== 'channel')
    expect(sorted(shown.map(([name, word]) => `${name} ${word}`))).toEqual(
      sorted(parameters.map(({ name, type }) => `${name} ${type.toUpperCase()}`)),
    )
    const { window, windowBytes, maxBytes, maxAgeMs, expireMs, overflow } = defaultConfig().channels
    const defaults = ['true', window, windowBytes, maxBytes, maxAgeMs, expireMs, overflow]
    expect(
      shown.map(([, word, unless]) => (word?.startsWith('UINT') ? numberIn(unless) : (quoted(unless)[0] ?? unless))),
    ).toEqual(defaults)
  })

  it('shows JSON of commands that parses, complete and without a key too many', () => {
    const lines = section('13')
      .split('\n')
      .filter((line) => line.startsWith('{"cmd"'))
    expect(lines.length).toBeGreaterThan(5)
    for (const { cmd, object } of lines.flatMap((line) => parseJsonCommands(line))) {
      jsonCommandArguments(jsonCommandName(cmd) as CommandName, object)
    }
  })
})

interface Parameter {
  readonly name: string
  readonly type: string
  readonly optional: boolean
}

function parameterOf({ name, type, optional }: Parameter): string {
  const text = `\`${name}\` ${type.toUpperCase()}`
  return optional ? `[${text}]` : text
}

interface Catalogued {
  readonly name: string
  readonly kind: string
  readonly parameters: Parameter[]
}

/** The fields of the values of a metric, with the names of those around them; the type of each. */
function fieldsOf(value: Value, fields: Map<string, string>, prefix = ''): void {
  if (value.type === BasicType.REC) {
    for (const field of value.value) {
      fields.set(prefix + field.name, typeName(field.type).toUpperCase())
      fieldsOf(field, fields, `${prefix}${field.name}.`)
    }
  } else if (value.type === BasicType.ARRAY && value.value.element === BasicType.REC) {
    for (const item of value.value.items) fieldsOf({ type: BasicType.REC, value: item as Field[] }, fields, prefix)
  }
}

/** Values of every `producer.*` metric, in which every field is there that the server ever sends. */
async function valuesOf(): Promise<Map<string, ValueMessage[]>> {
  const atChannel = args(['interval_ms', type.uint32, u32(1000)])
  await boss
    .ok((seq) => command.collect(seq, 'host.load.one', atChannel))
    .then(async (id) => {
      await boss.ok((seq) => command.subscribe(seq, id, 0))
      await boss.value()
    })
  const values = new Map<string, ValueMessage[]>()
  const nextOf = async (id: number): Promise<ValueMessage> => {
    for (;;) {
      const value = await boss.value()
      if (value.metric === id) return value
    }
  }
  for (const name of ['controls', 'channels', 'bindings', 'connections', 'sensors', 'stats', 'cluster']) {
    values.set(`producer.${name}`, [await boss.query(`producer.${name}`)])
  }
  producer.emit(5)
  values.set('producer.series', [await boss.query('producer.series', match('test.*'))])
  values.set('producer.recent', [await boss.query('producer.recent', args(['metric', type.string, str('test.*')]))])
  values.set('producer.history', [historyValue(producer.clock)])
  const families = ['with_families', true] as const
  const asked = [['step_ms', 1n] as const, ['with_losses', true] as const, families]
  values.set('producer.history.select', [
    await selectedValue(producer.clock, [families]),
    await selectedValue(producer.clock, asked),
  ])
  values.set('producer.history.query', expressionValues())
  values.set('producer.history.labels', labelsValues())
  values.set('producer.alerts', [alertsValue(producer.clock)])
  for (const [name, value] of alertValues(producer.clock)) values.set(name, [value])
  for (const [name, value] of notifierValues(producer.clock)) values.set(name, [value])
  values.set('producer.queries', [queriesValue(producer.clock)])
  await done(boss, 'board.save', { name: 'Night' })
  values.set('producer.boards', [await boss.query('producer.boards', args(['board', type.uint32, u32(1)]))])
  await producer.addUser('asker', { role: 'operator' })
  await done(boss, 'role.allow', { role: 'operator', command: 'EXECUTE', object: 'role.explain', approval: 'lead' })
  const waiting = { user: 'boss', command: 'COLLECT', object: 'host.*' }
  const asker = await producer.seat('asker')
  await askFor(asker, 'role.explain', waiting)
  values.set('producer.controls', [await boss.query('producer.controls'), await asker.query('producer.controls')])
  values.set('producer.approvals', [await boss.query('producer.approvals')])
  const one = args(['limit', type.uint32, u32(1)])
  values.set('producer.metrics', [await boss.query('producer.metrics'), await boss.query('producer.metrics', one)])
  const catalogue = await boss.collect('producer.catalogue')
  await boss.ok((seq) => command.subscribe(seq, catalogue, 0))
  producer.server.parts.hub.add(new SlowSensor())
  producer.clock.advance(1_000)
  values.set('producer.catalogue', [await nextOf(catalogue)])
  await boss.ok((seq) => command.stop(seq, catalogue, 0))
  const notices = await boss.collect('producer.notices')
  await boss.ok((seq) => command.subscribe(seq, notices, 0))
  producer.server.parts.notices.emit({ severity: 'info', subject: 'storage', detail: 'a test' })
  values.set('producer.notices', [await nextOf(notices)])
  const audit = await boss.collect('producer.audit', args(['after', type.uint64, u64(0)]))
  await boss.ok((seq) => command.subscribe(seq, audit, 0))
  values.set('producer.audit', [await nextOf(audit)])
  return values
}

describe('the metrics of the producer', () => {
  let catalogue: Catalogued[]
  beforeAll(async () => {
    catalogue = decoded(await boss.query('producer.metrics', match('producer.*')))
  })

  it('are those of section 9.2, with their kinds and arguments', () => {
    const rows = rowsBelow(section('9.2'), /^\| metric /).map(([name, kind, list]) => [quoted(name)[0], kind, list])
    const plain = (parameter: Parameter) => parameterOf({ ...parameter, optional: false })
    const found = catalogue.map(({ name, kind, parameters }) => [name, kind, parameters.map(plain).join(', ') || '-'])
    expect(rows.sort()).toEqual(found.sort())
  })

  it('are those of docs/sources/producer.md', () => {
    const rows = rowsBelow(read('docs/sources/producer.md'), /^\| metric /)
    expect(sorted(firstCells(rows))).toEqual(sorted(catalogue.map(({ name }) => name)))
  })

  it('have tables of their fields with names, types and order as they are sent', async () => {
    const values = await valuesOf()
    const lists = catalogue.filter(({ name }) => !name.startsWith('producer.stats.'))
    expect(sorted(values.keys())).toEqual(sorted(lists.map(({ name }) => name)))
    for (const [name, messages] of values) {
      const rows = rowsBelow(
        protocol,
        new RegExp(`^\\| field of \`${name.replace('.', '\\.')}\` \\| type \\| unit \\| meaning \\|$`),
      )
      const shown = new Map(rows.flatMap(([names, word = '']) => quoted(names).map((field) => [field, word] as const)))
      const found = new Map<string, string>()
      for (const { bytes } of messages) fieldsOf(readTyped(new XdrReader(bytes.subarray(20))), found)
      // A list that is cut ends so, however rarely that happens.
      if (messages[0]?.type === BasicType.ARRAY) found.set('more', 'BOOLEAN')
      if (['producer.recent', 'producer.series', 'producer.history.select', 'producer.history.query'].includes(name))
        found.set('after', 'STRING')
      // Each parameter declares others of them, in its own type.
      const isDeclared = name === 'producer.controls'
      if (isDeclared) for (const bound of ['min', 'max', 'default']) found.set(`parameters.${bound}`, 'any')
      expect(Object.fromEntries(named(found, shown)), name).toEqual(Object.fromEntries(shown))
      if (!isDeclared) expect([...named(found, shown).keys()], name).toEqual([...shown.keys()])
    }
  })
})

/** What was found, with `x.*` in place of the fields of x that depend on the source, as the table has them, except for those that it names. */
function named(found: ReadonlyMap<string, string>, shown: ReadonlyMap<string, string>): Map<string, string> {
  const named = new Map<string, string>()
  for (const [field, word] of found) {
    const open = field.replace(/\.[^.]+$/, '.*')
    if (!shown.has(field) && shown.has(open))
      named.set(open, /^[A-Z]/.test(shown.get(open) ?? '') ? word : (shown.get(open) ?? ''))
    else named.set(field, word)
  }
  return named
}

describe('what the pages name', () => {
  it('is every control in docs/controls.md, by its name or its family', async () => {
    const text = read('docs/controls.md')
    const controls: { name: string }[] = decoded(await boss.query('producer.controls'))
    const isNamed = (name: string) => text.includes(`\`${name}\``) || text.includes(`\`${name.replace(/\..*/, '.*')}\``)
    expect(controls.map(({ name }) => name).filter((name) => !isNamed(name))).toEqual([])
  })

  it('is a metric of the producer, a control, or a key of the configuration', async () => {
    const known = new Set(
      [
        ...decoded(await boss.query('producer.metrics', match('producer.*'))),
        ...decoded(await boss.query('producer.controls')),
      ].map(({ name }: { name: string }) => name),
    )
    const keys = Object.keys(defaultConfig().producer).map((key) =>
      key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    )
    for (const key of keys) known.add(`producer.${key}`)
    const family = /^(producer|channel|role|sensor|tenant|token|user)\.(?!ts$)[a-z_]+$/
    const named = pages().flatMap(({ path, spans }) =>
      spans.filter(({ text }) => family.test(text)).map(({ text, line }) => ({ text, at: `${path}:${line}` })),
    )
    expect(named.length).toBeGreaterThan(100)
    expect(named.filter(({ text }) => !known.has(text))).toEqual([])
  })
})

/** A sentence that says so denies something. */
const DENIAL =
  /not yet|\b(in|of) this version|\bthis version\b|(does|do|is|are) not (offer|support|implement)|UNSUPPORTED/i
/** What a sentence about "this version" may not be about. */
const PARTS = /\b(layers?|methods?|urls?|commands?|controls?|metrics?|extensions?|WRAP|DEF_CHANNEL|EXECUTE)\b/
/** They speak of one case, in which it is so. */
const TRUE_DENIALS = [/^- WRAP is UNSUPPORTED; encryption is that of `wss`/]

describe('what the pages deny', () => {
  const files = pages().map(({ path }) => path)

  it('is no device of its own', () => {
    for (const path of files) expect(read(path), path).not.toMatch(/\[not yet\]|not in this version/i)
  })

  it('is nothing that is offered', async () => {
    const catalogue = decoded(await boss.query('producer.metrics', match('producer.*')))
    const controls = decoded(await boss.query('producer.controls'))
    const names = [
      ...[offered.auth, offered.layer, offered.extension].flatMap((list) => [...list].map((name) => `\`${name}\``)),
      ...[...catalogue, ...controls].map(({ name }: { name: string }) => name),
      ...Object.keys(dialPorts).map((scheme) => `${scheme}://`),
      'idempotency_key',
      'dry_run',
    ]
    const untrue = files.flatMap((path) =>
      sentencesOf(read(path))
        .filter((sentence) => DENIAL.test(sentence) && !TRUE_DENIALS.some((known) => known.test(sentence)))
        .filter((sentence) => names.some((name) => sentence.includes(name)) || isAboutParts(sentence))
        .map((sentence) => `${path}: ${sentence}`),
    )
    expect(untrue).toEqual([])
  })
})

function isAboutParts(sentence: string): boolean {
  return /\b(not yet|this version)\b/i.test(sentence) && PARTS.test(sentence.replace(/`[^`]*`/g, ''))
}

/** The sentences of a page, and the rows of its tables; not its blocks. */
function sentencesOf(text: string): string[] {
  const prose = text.replace(/^```[\s\S]*?^```$/gm, '')
  const paragraphs = prose
    .split(/\n(?=\n|\||- |\* |\d+\. |#)/)
    .map((paragraph) => paragraph.replace(/\s+/g, ' ').trim())
  return paragraphs.flatMap((paragraph) => (paragraph.startsWith('|') ? [paragraph] : paragraph.split(/(?<=[.!?:]) /)))
}
