import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import type { Field, Value } from '../../../protocol/monitor/value.ts'
import { boolean, list, rec, runCli, type Script, string, TIME, uint32, uint64 } from '../fake-cli.ts'

const directory = mkdtempSync(join(tmpdir(), 'cinnabar-rights-'))
afterAll(() => rmSync(directory, { recursive: true }))

/** Every control does what it is told, and gives `value`. */
const done =
  (value?: Value, outcome = 'ok'): Script =>
  ({ name, of }) => {
    if (name !== 'EXECUTE') return {}
    const given: Field[] = value === undefined ? [] : [{ name: 'value', ...value } as Field]
    const answer = rec(string('outcome', outcome), string('detail', value ? '' : `${of} done`), ...given)
    return { result: 5, followedBy: [{ answer, transaction: 77 }] }
  }

describe('each command calls its control', () => {
  test.each<[string, string, Readonly<Record<string, unknown>>]>([
    ['tenant add acme', 'tenant.add', { tenant: 'acme' }],
    [
      'tenant add acme --channels 10 --queued-bytes 0',
      'tenant.add',
      { tenant: 'acme', channels: 10n, queued_bytes: 0n },
    ],
    [
      'tenant set acme --connections 1 --instances 2 --values-per-second 3 --controls-per-minute 4 --dials-per-minute 5 --audit-bytes-per-day 6',
      'tenant.set',
      {
        tenant: 'acme',
        connections: 1n,
        instances: 2n,
        values_per_second: 3n,
        controls_per_minute: 4n,
        dials_per_minute: 5n,
        audit_bytes_per_day: 6n,
      },
    ],
    ['tenant remove acme --yes', 'tenant.remove', { tenant: 'acme' }],
    ['role allow night execute exec.*', 'role.allow', { role: 'night', command: 'EXECUTE', object: 'exec.*' }],
    [
      'role deny night * exec.x unit=web* n=7',
      'role.deny',
      { role: 'night', command: '*', object: 'exec.x', where: 'unit=web* n=7' },
    ],
    [
      'role allow night EXECUTE exec.x --approval lead',
      'role.allow',
      { role: 'night', command: 'EXECUTE', object: 'exec.x', approval: 'lead' },
    ],
    ['approve 3f9a', 'control.approve', { id: '3f9a' }],
    ['refuse 3f9a --reason no', 'control.refuse', { id: '3f9a', reason: 'no' }],
    ['role forget 12', 'role.forget', { rule: 12n }],
    ['role remove night --yes', 'role.remove', { role: 'night' }],
    ['token revoke 3', 'token.revoke', { token: 3n }],
    ['sensor fence gmetric', 'sensor.fence', { sensor: 'gmetric' }],
    ['sensor resume gmetric', 'sensor.resume', { sensor: 'gmetric' }],
  ])('%s', async (line, control, args) => {
    const { code, out, err, producer } = await runCli(line.split(' '), done())
    expect({ code, out, err }).toEqual({ code: 0, out: [], err: [`${control} done`] })
    expect(producer.asked[0]).toMatchObject({ name: 'EXECUTE', of: control })
    expect(producer.asked[0]?.args).toEqual(args)
  })

  test.each([
    'tenant set acme',
    'tenant add acme --channels many',
    'tenant add acme --channels -1',
    'role allow night COMMIT exec.x',
    'role allow night EXECUTE exec.x unit',
    'role forget x',
    'token revoke cnb_x',
    'token add alice --expires 90',
    'token add alice --scope host.*',
    'token add a/b/c',
    'explain alice COMMIT a',
  ])('%s is wrong usage', async (line) => {
    const { code, producer } = await runCli(line.split(' '), done())
    expect({ code, sent: producer.sent }).toEqual({ code: 2, sent: [] })
  })

  test('a pattern with a blank would be taken for two', async () => {
    const { code, err, producer } = await runCli(['role', 'allow', 'night', 'EXECUTE', 'exec.x', 'unit=a b=c'], done())
    expect({ code, sent: producer.sent }).toEqual({ code: 2, sent: [] })
    expect(err.join()).toContain('"unit=a b=c" contains a space')
  })

  test('a refusal of the server is reported', async () => {
    const { code, err } = await runCli(['tenant', 'remove', 'acme', '--yes'], done(undefined, 'failed'))
    expect({ code, err }).toEqual({ code: 1, err: ['cinnabar: tenant.remove: failed: tenant.remove done'] })
  })
})

describe('lists', () => {
  test('tenant list shows the used part of each quota', async () => {
    const record = [
      string('tenant', 'acme'),
      uint32('users', 2),
      { name: 'quota', ...rec(uint64('channels', 10n), uint64('queued_bytes', 1_048_576n)) } as Field,
      {
        name: 'used',
        ...rec(uint64('connections', 3n), uint64('channels', 10n), uint64('queued_bytes', 2048n)),
      } as Field,
    ]
    const { out } = await runCli(['tenant', 'list'], done(list(record)))
    expect(out).toEqual([
      'TENANT  USERS  CONNECTIONS  CHANNELS             QUEUED  INSTANCES  VALUES/S  CONTROLS/MIN  AUDIT/DAY  DIALS/MIN  SERIES  HISTORY  HISTORY SERIES  RULES  NOTIFIERS  RULE S/H',
      'acme        2            3     10/10  2.00 KiB/1.00 MiB          0         0             0        0 B          0       0      0 B               0      0          0         0',
    ])
    const { out: json } = await runCli(['tenant', 'list', '--json'], done(list(record)))
    expect(JSON.parse(json.join())).toMatchObject({ tenant: 'acme', used: { channels: 10 } })
  })

  test('role list shows the rules by their numbers', async () => {
    const rule = [string('role', 'night'), uint32('rule', 4), string('effect', 'allow'), string('object', 'exec.*')]
    const { out } = await runCli(['role', 'list'], done(list(rule)))
    expect(out).toEqual(['ROLE   RULE  EFFECT  OBJECT', 'night     4  allow   exec.*'])
  })

  test('token list shows when they end, and of whom', async () => {
    const token = (id: number, scope: string, expires: bigint) => [
      uint32('token', id),
      string('tenant', 'default'),
      string('user', 'alice'),
      string('name', 'ci'),
      string('scope', scope),
      uint64('made', BigInt(TIME)),
      uint64('expires', expires),
    ]
    const script = done(list(token(1, '', 0n), token(12, 'COLLECT host.*', BigInt(TIME))))
    const { out, producer } = await runCli(['token', 'list', 'acme/alice'], script)
    expect(producer.asked[0]?.args).toEqual({ user: 'alice', tenant: 'acme' })
    expect(out).toEqual([
      'TOKEN  TENANT   USER   NAME  SCOPE                   MADE                     EXPIRES',
      '    1  default  alice  ci    everything but PUBLISH  2023-11-14 22:13:20.005  never',
      '   12  default  alice  ci    COLLECT host.*          2023-11-14 22:13:20.005  2023-11-14 22:13:20.005',
    ])
  })

  test('an empty list is reported', async () => {
    const { code, out, err } = await runCli(['token', 'list'], done(list()))
    expect({ code, out, err }).toEqual({ code: 0, out: [], err: ['there are no tokens'] })
    expect((await runCli(['token', 'list', '--json'], done(list()))).err).toEqual([])
  })
})

describe('token add', () => {
  test('makes the token here, and sends nothing but its hash', async () => {
    const argv = ['token', 'add', 'alice', '--name', 'ci', '--expires', '90d', '--scope', 'COLLECT host.*']
    const { code, out, producer } = await runCli([...argv, '--scope', 'EXECUTE exec.x'], done())
    const [token = ''] = out
    expect(code).toBe(0)
    expect(token).toMatch(/^cnb_[A-Za-z0-9_-]{43}$/)
    expect(producer.asked[0]?.args).toEqual({
      user: 'alice',
      hash: createHash('sha256').update(token).digest('hex'),
      name: 'ci',
      scope: 'COLLECT host.*\nEXECUTE exec.x',
      expires_in_s: 7_776_000n,
    })
    expect(producer.hex).not.toContain(Buffer.from(token).toString('hex'))
    expect((await runCli(argv, done())).out[0]).not.toBe(token)
  })

  test('writes it to a new file that only its owner can read, and prints nothing', async () => {
    const file = join(directory, 'new.token')
    const { out, producer } = await runCli(['token', 'add', 'alice', '--out', file], done())
    expect(out).toEqual([])
    const token = readFileSync(file, 'utf8').trimEnd()
    expect(producer.asked[0]?.args['hash']).toBe(createHash('sha256').update(token).digest('hex'))
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  test('never overwrites a file, and removes its own if the server refuses', async () => {
    const file = join(directory, 'there.token')
    writeFileSync(file, 'in use')
    const { code, err, producer } = await runCli(['token', 'add', 'alice', '--out', file], done())
    expect({ code, asked: producer.asked }).toEqual({ code: 1, asked: [] })
    expect(err.join()).toContain(`${file}: the file exists`)
    expect(readFileSync(file, 'utf8')).toBe('in use')
    const other = join(directory, 'other.token')
    expect((await runCli(['token', 'add', 'bob', '--out', other], done(undefined, 'failed'))).code).toBe(1)
    expect(() => statSync(other)).toThrow(/ENOENT/)
  })
})

describe('explain', () => {
  const verdict = (isAllowed: boolean) => rec(boolean('allowed', isAllowed), string('because', 'rule 4'))

  test.each([
    [true, 0, 'allowed: rule 4'],
    [false, 1, 'denied: rule 4'],
  ])('allowed is %j: exit code %d', async (isAllowed, expected, line) => {
    const argv = ['explain', 'acme/alice', 'get', 'host.load.one', 'host=n1']
    const { code, out, err, producer } = await runCli(argv, done(verdict(isAllowed)))
    expect({ code, out, err }).toEqual({ code: expected, out: [line], err: [] })
    const args = { user: 'acme/alice', command: 'GET', object: 'host.load.one', where: 'host=n1' }
    expect(producer.asked[0]).toMatchObject({ of: 'role.explain', args })
    const json = await runCli([...argv, '--json'], done(verdict(isAllowed)))
    expect(JSON.parse(json.out.join())).toEqual({ allowed: isAllowed, because: 'rule 4' })
  })

  test('is what a refusal leads to', async () => {
    const refused: Script = ({ name }) => (name === 'EXECUTE' ? { status: 'PERMISSION_DENIED' } : {})
    const { code, err } = await runCli(['exec', 'exec.x'], refused)
    expect(code).toBe(1)
    expect(err).toContain(
      '`cinnabar explain tc EXECUTE OBJECT`, run by an admin, shows which rule forbids it; see also --user',
    )
    const byToken = await runCli(['exec', 'exec.x'], refused, { env: { CINNABAR_TOKEN: 'cnb_x' } })
    expect(byToken.err.join()).toMatch(/explain USER EXECUTE OBJECT.* or the scope of the token does not include it/)
    const full: Script = () => ({ status: 'QUOTA_EXCEEDED' })
    expect((await runCli(['get', 'a'], full)).err.join()).toContain('`cinnabar tenant list`')
  })
})
