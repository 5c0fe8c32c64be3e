/** What packaging/ says of the server is true. systemd itself has no part in it: `systemd-analyze verify` reads the unit. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { load } from '../../server/kernel/config/load.ts'
import { schema } from '../../server/start/config.ts'
import { runCli } from '../cli/fake-cli.ts'

const ROOT = new URL('../..', import.meta.url).pathname
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')
const manifest = JSON.parse(read('package.json')) as { bin: { cinnabar: string } }
const TOML = join(ROOT, 'packaging/cinnabar.toml')

/** Every `Key=value` of a unit; what stands twice is a list. */
function settingsOf(unit: string): Map<string, string[]> {
  const settings = new Map<string, string[]>()
  for (const [, key = '', value = ''] of unit.matchAll(/^(\w+)=(.*)$/gm)) {
    settings.set(key, [...(settings.get(key) ?? []), value])
  }
  return settings
}

describe('packaging/cinnabar.service', () => {
  const settings = settingsOf(read('packaging/cinnabar.service'))
  const one = (key: string) => {
    expect(settings.get(key), key).toHaveLength(1)
    return settings.get(key)?.[0] ?? ''
  }

  it('runs the program of the package, by a subcommand and an option that it has', async () => {
    const [env, node, program, subcommand = '', ...options] = one('ExecStart').split(' ')
    expect([env, node]).toEqual(['/usr/bin/env', 'node'])
    expect(program).toBe(`/opt/cinnabar/current/${manifest.bin.cinnabar}`)
    expect(existsSync(join(ROOT, manifest.bin.cinnabar.replace(/^dist\/(.+)\.js$/, '$1.ts')))).toBe(true)
    expect(options).toEqual(['--config', '/etc/cinnabar/cinnabar.toml'])
    const { code, out } = await runCli([subcommand, '--help'])
    expect(code).toBe(0)
    expect(out.join('\n')).toContain('--config <file>')
  })

  it('points to a document that is there', () => {
    expect(existsSync(join(ROOT, one('Documentation').replace('file:///opt/cinnabar/current/', '')))).toBe(true)
  })

  it('gives the server the directory that its configuration names, and nobody else', () => {
    const dataDir = load(schema, { file: TOML, env: {} }).values.producer.data_dir
    expect(dataDir).toBe(`/var/lib/${one('StateDirectory')}`)
    expect(one('WorkingDirectory')).toBe(dataDir)
    expect(one('StateDirectoryMode')).toBe('0700')
    expect(one('UMask')).toBe('0077')
  })

  it.each(['STOP_MS', 'NODE_STOP_MS'])('gives the server more time to stop than it takes: %s', (name) => {
    const stopMs = Number(
      new RegExp(`^const ${name} = ([\\d_]+)$`, 'm').exec(read('server/start/main.ts'))?.[1]?.replace('_', ''),
    )
    expect(stopMs).toBeGreaterThan(0)
    expect(Number(one('TimeoutStopSec')) * 1000).toBeGreaterThan(stopMs)
    expect(read('server/start/main.ts')).toContain(`'${one('KillSignal')}'`)
  })

  it('leaves room for as many connections as the configuration allows', () => {
    expect(Number(one('LimitNOFILE'))).toBeGreaterThan(
      Number(load(schema, { file: TOML, env: {} }).values.limits.connections),
    )
  })

  it('does not start again what a wrong configuration has ended', async () => {
    expect(one('Restart')).toBe('on-failure')
    const { code } = await runCli(['config', 'check', '--config', join(ROOT, 'package.json')])
    expect(one('RestartPreventExitStatus')).toBe(String(code))
  })

  it('allows nothing that the server does not need', () => {
    expect(one('CapabilityBoundingSet')).toBe('')
    expect(one('NoNewPrivileges')).toBe('yes')
    expect(one('ProtectSystem')).toBe('strict')
    expect(settings.get('SystemCallFilter')?.[0]).toBe('@system-service')
  })

  it('forbids nothing that it needs: code that V8 writes, sockets, and what host.* reads', () => {
    expect(settings.has('MemoryDenyWriteExecute')).toBe(false)
    expect(one('RestrictAddressFamilies').split(' ')).toEqual(expect.arrayContaining(['AF_INET', 'AF_INET6']))
    expect(one('ProtectProc')).toBe('default')
    expect(one('ProcSubset')).toBe('all')
    expect(one('PrivateNetwork')).toBe('no')
    expect(one('ProtectHome')).toBe('read-only')
  })
})

describe('packaging/cinnabar.toml', () => {
  const shipped = read('packaging/cinnabar.toml')

  it('is a configuration that is as shipped but for the data directory', () => {
    const { values } = load(schema, { file: TOML, env: {} })
    const defaults = load(schema, { env: {} }).values
    expect(values).toEqual({ ...defaults, producer: { ...defaults.producer, data_dir: '/var/lib/cinnabar' } })
  })

  it('is still one with everything that stands in comments', () => {
    const whole = shipped.replace(/^# (?=\[|\w+ = )/gm, '')
    const { values } = load(schema, { file: 'cinnabar.toml', env: {}, readFile: () => Buffer.from(whole) })
    expect(values.gmetric.listen).toEqual({ host: '0.0.0.0', port: 8649 })
    expect(values.smon.tcp).toEqual({ host: '127.0.0.1', port: 2606 })
  })
})
