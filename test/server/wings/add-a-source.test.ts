/** The worked example of docs/contributing.md: the source that it adds, as the schema and the hub see it. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { load } from '../../../server/kernel/config/load.ts'
import { schemaOf } from '../../../server/kernel/config/schema.ts'
import { Hub } from '../../../server/kernel/metrics/hub.ts'
import type { PolledSensor } from '../../../server/kernel/metrics/metric.ts'
import { filesSection } from '../../cases/sources/files/config.ts'
import { files } from '../../cases/sources/files/source.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { handKit } from '../../support/hand-kit.ts'

const EXAMPLE = new URL('../../cases/sources/files/', import.meta.url)
const PAGE = new URL('../../../docs/contributing.md', import.meta.url)
const directory = mkdtempSync(join(tmpdir(), 'cinnabar-'))

afterAll(() => rmSync(directory, { recursive: true, force: true }))

const identity = { userId: 1, tenant: 'default', name: 'a', role: 'consumer' }
const schema = schemaOf({ files: filesSection })

test.each(['config', 'source'])('the page shows %s.ts as it is, but for where it stands', (name) => {
  const block = /^```ts\n\/\/ file: server\/wings\/files\/(\w+)\.ts\n([\s\S]*?)^```$/gm
  const shown = new Map([...readFileSync(PAGE, 'utf8').matchAll(block)].map(([, file, text]) => [file, text]))
  const inPlace = readFileSync(new URL(`${name}.ts`, EXAMPLE), 'utf8')
    .replaceAll('../../../../server/wings/', '../')
    .replaceAll('../../../../server/', '../../')
    .replaceAll('../../../../protocol/', '../../../protocol/')
  expect(shown.get(name)).toBe(inPlace)
})

test('its section has a default, an environment variable and a message for what is wrong', () => {
  expect(load(schema, { env: {} }).config.files).toEqual({ table: '/proc/sys/fs/file-nr' })
  expect(load(schema, { env: { CINNABAR_FILES_TABLE: 'x' } }).config.files).toEqual({ table: 'x' })
  const readFile = () => new TextEncoder().encode('[files]\ntabel = "x"\n')
  expect(() => load(schema, { file: 'c.toml', env: {}, readFile })).toThrow(
    'c.toml:2: unknown key `files.tabel`: did you mean `table`?',
  )
})

test('its sensor measures what the file says, and VOID if it cannot be read', async () => {
  const clock = new FakeClock()
  const hub = new Hub(clock)
  const table = join(directory, 'file-nr')
  writeFileSync(table, '1504\t0\t9223372036854775807\n')
  const { kit } = handKit(hub, clock)
  await files.open(kit, { table }, { scrape: [] })
  const [sensor] = hub.sensors as readonly PolledSensor[]
  const measure = () => sensor!.measure(sensor!.metric('files.open')!, new Map(), identity)
  expect(measure()).toEqual({ value: { type: 4, value: 1504n }, time: clock.microseconds() })
  rmSync(table)
  expect(measure()).toMatchObject({ value: { type: 11 } })
})
