/** Every folder of test/cases/host is a host: files as they lie below /proc, and what its metrics must say. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { HOST_DEFINITIONS } from '../../../../server/wings/host/definitions.ts'
import { type HostArgs, HostReader, UnknownHostObject } from '../../../../server/wings/host/reader.ts'
import { type FakeHost, fakeHost } from './fake-host.ts'

interface HostCase {
  readonly about: string
  readonly processes: readonly string[]
  readonly space: Readonly<Record<string, { bsize: number; blocks: number; bfree: number; bavail: number }>>
  /** A UINT64 is written as a string, what is not available as null. */
  readonly values: readonly { name: string; args?: HostArgs; value: number | string | null }[]
  readonly refused?: readonly { name: string; args: HostArgs; because: string }[]
}

const CASES = new URL('../../../cases/host/', import.meta.url).pathname

for (const folder of readdirSync(CASES)) {
  const hostCase: HostCase = JSON.parse(readFileSync(join(CASES, folder, 'case.json'), 'utf8'))
  describe(`${folder} (${hostCase.about})`, () => {
    for (const { name, args = {}, value } of hostCase.values) {
      test(`${name} ${JSON.stringify(args)} is ${value}`, () => {
        const measured = new HostReader(hostOf(folder, hostCase)).read(name, args, 0)
        const type = HOST_DEFINITIONS.find((metric) => metric.name === name)?.type
        if (value === null) expect(measured).toBeUndefined()
        else if (type === BasicType.DOUBLE) expect(measured).toBeCloseTo(Number(value), 9)
        else if (type === BasicType.UINT64) expect(measured).toBe(BigInt(value))
        else expect(measured).toBe(value)
      })
    }

    for (const { name, args, because } of hostCase.refused ?? []) {
      test(`${name} ${JSON.stringify(args)} is refused by check and by read`, () => {
        const reader = new HostReader(hostOf(folder, hostCase))
        expect(() => reader.check(name, args, 0)).toThrow(new UnknownHostObject(because))
        expect(() => reader.read(name, args, 0)).toThrow(new UnknownHostObject(because))
      })
    }
  })
}

test('the newest kernel of the cases gives every Linux metric', () => {
  const { values }: HostCase = JSON.parse(readFileSync(join(CASES, 'linux-6.18', 'case.json'), 'utf8'))
  const given = new Set(values.filter(({ value }) => value !== null).map(({ name }) => name))
  const missing = HOST_DEFINITIONS.filter(({ name, group }) => group !== 'static' && !given.has(name))
  expect(missing).toEqual([])
})

function hostOf(folder: string, { processes, space }: HostCase): FakeHost {
  const host = fakeHost()
  for (const file of readdirSync(join(CASES, folder), { recursive: true, encoding: 'utf8' })) {
    const path = join(CASES, folder, file)
    if (statSync(path).isFile()) host.files.set(`/proc/${file}`, readFileSync(path, 'utf8'))
  }
  host.processes.push(...processes)
  for (const [mount, { bsize, blocks, bfree, bavail }] of Object.entries(space)) {
    const stats = { bsize: BigInt(bsize), blocks: BigInt(blocks), bfree: BigInt(bfree), bavail: BigInt(bavail) }
    host.spaces.set(mount, stats)
  }
  return host
}
