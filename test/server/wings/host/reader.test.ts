import { describe, expect, test } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { availableDefinitions, HOST_DEFINITIONS } from '../../../../server/wings/host/definitions.ts'
import { HostReader, type HostValue } from '../../../../server/wings/host/reader.ts'
import { systemAccess } from '../../../../server/wings/host/snapshot.ts'
import { fakeHost, statOf } from './fake-host.ts'

describe('on Linux', () => {
  test('readings within 5 ticks share one reading of a file, the next tick reads anew', () => {
    const host = fakeHost()
    host.files.set('/proc/stat', `${statOf(1, 3)}procs_running 2\nbtime 5\n`)
    const reader = new HostReader(host)
    for (const name of ['host.cpu.user', 'host.cpu.number', 'host.process.running']) reader.read(name, {}, 1)
    reader.check('host.cpu.user', { cpu: '0' }, 1)
    expect(host.reads).toEqual(['/proc/stat'])
    host.files.set('/proc/stat', 'procs_running 9\n')
    expect(reader.read('host.process.running', {}, 5)).toBe(2)
    expect(reader.read('host.process.running', {}, 6)).toBe(9)
  })

  test('a file system is asked once per tick, also when it is gone', () => {
    const host = fakeHost()
    const reader = new HostReader(host)
    for (const field of ['total', 'free', 'used']) expect(reader.read(`host.disk.${field}`, {}, 1)).toBeUndefined()
    expect(host.reads).toEqual(['/'])
  })

  test('a COLLECT without a parameter is checked without touching a file', () => {
    const host = fakeHost()
    const reader = new HostReader(host)
    for (const { name } of HOST_DEFINITIONS) reader.check(name, {}, 1)
    expect(host.reads).toEqual([])
  })

  test('arguments that a metric does not take are not looked at', () => {
    const host = fakeHost()
    host.files.set('/proc/loadavg', '1.50 0 0 1/1 1')
    expect(new HostReader(host).read('host.load.one', { cpu: '9', device: 'sdz' }, 1)).toBe(1.5)
  })

  test('parts are what there is now; a mount has a size and is not on the network', () => {
    const host = fakeHost()
    host.files.set('/proc/stat', 'cpu 4 0 0 4\ncpu10 1 0 0 1\ncpu2 3 0 0 3\n')
    host.files.set('/proc/net/dev', 'Inter-| Receive | Transmit\n face |bytes|bytes\n lo: 1 1\neth0: 2 2\n')
    host.files.set('/proc/diskstats', '8 0 sda 1 0 2 0 3 0 4 0 0 0 0\n8 1 sda1 1 0 2 0 3 0 4 0 0 0 0\n')
    const mounts = ['/ ext4', '/proc proc', '/data xfs', '/net nfs4', '/broken ext4']
    host.files.set('/proc/self/mounts', mounts.map((mount) => `x ${mount} rw 0 0\n`).join(''))
    const sizes = { type: 0n, bsize: 4096n, bfree: 1n, bavail: 1n, files: 0n, ffree: 0n }
    host.spaces.set('/data', { ...sizes, blocks: 9n }).set('/proc', { ...sizes, blocks: 0n })
    const statfs = (path: string) => (path === '/broken' ? raise('EIO') : host.statfs(path))
    const reader = new HostReader({ ...host, statfs })
    expect(reader.parts('host.cpu.user', 1)).toEqual(['2', '10'])
    expect(reader.parts('host.disk.free', 1)).toEqual(['/', '/data', '/broken'])
    expect(reader.parts('host.disk.reads', 1)).toEqual(['sda', 'sda1'])
    expect(reader.parts('host.net.sent_bytes', 1)).toEqual(['lo', 'eth0'])
    expect(reader.parts('host.load.one', 1)).toEqual([])
    expect(() => reader.check('host.cpu.user', { cpu: '02' }, 1)).toThrow('no cpu "02": this host has 2, 10')
  })

  test('the key decides which readings a percentage lies between', () => {
    const host = fakeHost()
    const reader = new HostReader(host)
    host.files.set('/proc/stat', statOf(10, 90))
    reader.read('host.cpu.user', {}, 0, 'series 1')
    host.files.set('/proc/stat', statOf(40, 160))
    expect(reader.read('host.cpu.user', {}, 90_000, 'series 1')).toBe(30)
    expect(reader.read('host.cpu.user', {}, 90_000)).toBe(20)
    reader.forget('series 1')
    expect(reader.read('host.cpu.user', {}, 90_005, 'series 1')).toBe(20)
  })

  test('a file that cannot be read for another reason than absence is reported', () => {
    const host = { ...fakeHost(), readFile: () => raise('EMFILE') }
    expect(() => new HostReader(host).read('host.load.one', {}, 1)).toThrow('EMFILE')
  })

  test('a hidden file makes its metrics unavailable', () => {
    const host = { ...fakeHost(), readFile: () => raise('EACCES'), readDirectory: () => raise('EACCES') }
    const reader = new HostReader(host)
    const values = HOST_DEFINITIONS.filter(({ group }) => group !== 'static').map(({ name }) =>
      reader.read(name, {}, 1),
    )
    expect(new Set(values)).toEqual(new Set([undefined]))
  })

  test('a metric that does not exist is a mistake of the caller', () => {
    expect(() => new HostReader(fakeHost()).read('host.cpu.speed', {}, 1)).toThrow('host.cpu.speed')
  })
})

describe('elsewhere', () => {
  test('node:os gives a part of the metrics', () => {
    const host = fakeHost('darwin')
    host.spaces.set('/', { bsize: 2n, blocks: 10n, bfree: 6n, bavail: 5n })
    const reader = new HostReader(host)
    const values = availableDefinitions('darwin').map(({ name }): [string, HostValue] => [
      name,
      reader.read(name, {}, 1),
    ])
    expect(Object.fromEntries(values)).toEqual({
      'host.cpu.number': 2,
      'host.cpu.user': 20,
      'host.cpu.system': 15,
      'host.cpu.idle': 60,
      'host.cpu.nice': 5,
      'host.load.one': 1,
      'host.load.five': 2,
      'host.load.fifteen': 3,
      'host.mem.total': 4096n,
      'host.mem.free': 2048n,
      'host.disk.total': 20n,
      'host.disk.free': 10n,
      'host.disk.used': 8n,
      'host.uptime': 77.5,
      'host.name': 'n1',
      'host.os': 'Darwin',
      'host.kernel': '24.0.1',
      'host.arch': 'x86_64',
    })
    expect(host.reads).toEqual(['/'])
  })

  test('each CPU can be asked for, and no other mount than the root', () => {
    const reader = new HostReader(fakeHost('freebsd'))
    expect(reader.read('host.cpu.user', { cpu: '1' }, 1)).toBe(30)
    expect(() => reader.check('host.cpu.user', { cpu: '2' }, 1)).toThrow('no cpu "2": this host has 0 to 1')
    expect(() => reader.check('host.disk.free', { mount: '/etc' }, 1)).toThrow('no mount "/etc": this host has /')
  })

  test('Windows has no load averages', () => {
    const names = availableDefinitions('win32').map(({ name }) => name)
    expect(names).toContain('host.cpu.user')
    expect(names.filter((name) => name.startsWith('host.load.') || name === 'host.cpu.nice')).toEqual([])
    expect(() => new HostReader(fakeHost('win32')).read('host.load.one', {}, 1)).toThrow('not measured on win32')
  })
})

test('this machine gives values of the declared types', () => {
  const access = systemAccess()
  const reader = new HostReader(access)
  const jsTypes: Readonly<Record<number, string>> = {
    [BasicType.UINT32]: 'number',
    [BasicType.DOUBLE]: 'number',
    [BasicType.UINT64]: 'bigint',
    [BasicType.STRING]: 'string',
  }
  for (const { name, type } of availableDefinitions(access.platform)) {
    const value = reader.read(name, {}, 1)
    expect([jsTypes[type], 'undefined'], name).toContain(typeof value)
    expect(value).not.toBeNaN()
  }
  expect(reader.read('host.mem.total', {}, 1)).toBeGreaterThan(0n)
})

function raise(code: string): never {
  throw Object.assign(new Error(code), { code })
}
