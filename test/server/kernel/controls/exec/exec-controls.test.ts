/** What a program that runs as a control gives, what it gets, and that nothing is left of it. */
import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { valueToJson } from '../../../../../protocol/monitor/json-value.ts'
import type { ControlArguments, ControlContext, ControlResult } from '../../../../../server/kernel/controls/control.ts'
import { execControl, execControls } from '../../../../../server/kernel/controls/exec/exec-controls.ts'
import {
  locatePrograms,
  type Machine,
  tablesThatRead,
} from '../../../../../server/kernel/controls/exec/program-lookup.ts'
import { systemClock } from '../../../../../server/kernel/core/clock.ts'
import { StatusError } from '../../../../../server/kernel/core/errors.ts'
import { ConfigError } from '../../../../../server/start/config.ts'
import { timeouts } from '../../../../chaos/timeouts.ts'
import { eventually } from '../../../../support/eventually.ts'
import { execTables } from '../../../../support/exec-tables.ts'
import { leftOf, zombies } from '../../../../support/processes.ts'
import type { Json } from '../../../../support/records.ts'

const going = new AbortController().signal
const context = {} as ControlContext
const clock = systemClock()

/** A table whose program is a line for `sh`: what the operator writes is the operator's own. */
const table = (line: string, more = ''): string =>
  `[[exec]]\nname = "exec.a"\nargv = ["/bin/sh", "-c", ${JSON.stringify(line)}]\n${more}\n`

async function run(toml: string, given: ControlArguments = new Map(), signal = going): Promise<ControlResult> {
  const [control] = execControls(execTables(toml), clock)
  return (control as NonNullable<typeof control>).prepare(given, context)(signal)
}

function fields({ value }: ControlResult): Json {
  return valueToJson(value)
}

describe('the result of a program', () => {
  it('is ok with exit code 0, and both outputs', async () => {
    const result = await run(table('echo out; echo err >&2'))
    expect(result).toMatchObject({ outcome: 'ok', detail: '' })
    expect(fields(result)).toEqual({ exit: 0, stdout: 'out\n', stderr: 'err\n', truncated: false })
  })

  it('is failed with any other', async () => {
    const result = await run(table('exit 3'))
    expect([result.outcome, result.detail, fields(result)['exit']]).toEqual(['failed', 'exit code 3', 3])
  })

  it('is failed with the signal that ended it', async () => {
    const result = await run(table('kill -9 $$'))
    expect([result.outcome, result.detail]).toEqual(['failed', 'ended by SIGKILL'])
    expect(fields(result)).toMatchObject({ signal: 'SIGKILL' })
  })

  it('keeps so much of the output, and says that there was more', async () => {
    const result = await run(table('head -c 300000 /dev/zero; echo err >&2', 'max_output = 100'))
    expect(result.outcome).toBe('ok')
    const { stdout, stderr, truncated } = fields(result)
    expect([String(stdout).length + String(stderr).length, truncated]).toEqual([100, true])
  })

  it('holds what is no UTF-8 as replaced characters', async () => {
    expect(fields(await run(table(String.raw`printf 'a\377b'`)))['stdout']).toBe('a\ufffdb')
  })
})

describe('a program', () => {
  it('gets PATH, LANG and what the table names, and nothing of the server', async () => {
    process.env['CANARY_OF_THE_SERVER'] = 'x'
    const result = await run('[[exec]]\nname = "exec.a"\nargv = ["env"]\nenvironment = { A = "1", LANG = "C" }')
    delete process.env['CANARY_OF_THE_SERVER']
    const PATH = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
    expect(String(fields(result)['stdout']).trim().split('\n').sort()).toEqual(['A=1', 'LANG=C', PATH])
  })

  it('gets a secret by its input or environment alone', async () => {
    const parameters = ['one', 'two'].map((name) => `[[exec.parameter]]\nname = "${name}"\nsecret = true\n`).join('')
    const more = `stdin = "{one}"\nenvironment = { TWO = "{two}" }\n${parameters}`
    const line = 'cat; echo; echo "$TWO"; tr "\\0" " " </proc/$$/cmdline'
    const { stdout } = fields(
      await run(
        table(line, more),
        new Map([
          ['one', 'canary-1'],
          ['two', 'canary-2'],
        ]),
      ),
    )
    const [one, two, argv] = String(stdout).split('\n')
    expect([one, two]).toEqual(['canary-1', 'canary-2'])
    expect(argv).not.toContain('canary')
  })

  it('that is refused a secret does not say what would be right', async () => {
    const secret = (more: string) =>
      table('true', `stdin = "{x}"\n[[exec.parameter]]\nname = "x"\nsecret = true\n${more}`)
    for (const more of ['values = ["canary"]', 'pattern = "canary"']) {
      await expect(run(secret(more), new Map([['x', 'y']]))).rejects.toThrow(/^argument x: invalid$/)
    }
  })

  it('reads nothing where the table gives it nothing', async () => {
    expect(fields(await run(table('cat; pwd')))['stdout']).toBe('/\n')
  })

  it('that does not read what it is given is no error', async () => {
    const more = 'stdin = "{v}"\n[[exec.parameter]]\nname = "v"\nsecret = true\nmax_length = 4096'
    expect((await run(table('exit 0', more), new Map([['v', 'x'.repeat(4096)]]))).outcome).toBe('ok')
  })

  it('is not started without what an argument needs: that argument is left out', async () => {
    const toml =
      '[[exec]]\nname = "exec.a"\nargv = ["echo", "a", "--x={x}", "b"]\n[[exec.parameter]]\nname = "x"\noptional = true'
    expect(fields(await run(toml))['stdout']).toBe('a b\n')
    expect(fields(await run(toml, new Map([['x', '1']])))['stdout']).toBe('a --x=1 b\n')
  })

  it('leaves nobody of its group behind, nor waits for whoever holds its output', async () => {
    const result = await run(table('sleep 300 & echo $$; exit 0'))
    expect(result.outcome).toBe('ok')
    expect(await leftOf(new Set([Number(fields(result)['stdout'])]))).toEqual([])
  })

  it('is ended when the server stops', async () => {
    const stopping = new AbortController()
    const directory = mkdtempSync(join(tmpdir(), 'cinnabar-'))
    const begun = join(directory, 'begun')
    const result = run(table(`echo $$; sleep 300 & touch ${begun}; wait`), new Map(), stopping.signal)
    await eventually(() => expect(existsSync(begun)).toBe(true))
    stopping.abort()
    expect(await result).toMatchObject({ outcome: 'failed', detail: 'ended because the producer stopped' })
    const group = Number(fields(await result)['stdout'])
    expect(group).toBeGreaterThan(0)
    expect(await leftOf(new Set([group]))).toEqual([])
    rmSync(directory, { recursive: true })
  })

  it('that ignores SIGTERM is killed with all of its group', async () => {
    const result = await run(table('trap "" TERM; echo $$; (trap "" TERM; sleep 300) & sleep 300', 'timeout = "300ms"'))
    expect(result).toMatchObject({ outcome: 'timeout', detail: 'ended after 300 ms' })
    expect(await leftOf(new Set([Number(fields(result)['stdout'])]))).toEqual([])
    expect(zombies()).toEqual([])
  })

  it('100 times over its time leaves no zombie and nobody of its groups', async () => {
    const totals = await timeouts({ seed: 1, count: 100, say: () => {} })
    expect(totals).toMatchObject({ timeouts: 100, lost: 0, zombies: 0, left: 0 })
  })
})

describe('values that are no text', () => {
  const toml = (more: string) =>
    `[[exec]]\nname = "exec.a"\nargv = ["echo", "{x}"]\n[[exec.parameter]]\nname = "x"\n${more}`
  const outcomeOf = async (more: string, x: bigint | number | boolean): Promise<unknown> => {
    try {
      return fields(await run(toml(more), new Map([['x', x]])))['stdout']
    } catch (error) {
      return error instanceof StatusError ? error.message : error
    }
  }

  it.each([
    ['type = "integer"', 5n, '5\n'],
    ['type = "integer"', -5n, 'argument x: begins with "-"'],
    ['type = "integer"\nallow_dash = true', -5n, '-5\n'],
    ['type = "integer"\nmin = 1\nmax = 3', 0n, 'argument x: at least 1'],
    ['type = "integer"\nmin = 1\nmax = 3', 4n, 'argument x: at most 3'],
    ['type = "number"', 1.5, '1.5\n'],
    ['type = "number"', Number.NaN, 'argument x: not a number'],
    ['type = "number"\nmax = 1', Number.POSITIVE_INFINITY, 'argument x: not a number'],
    ['type = "number"\nmax = 1', 1.01, 'argument x: at most 1'],
    ['type = "boolean"', true, 'true\n'],
  ])('%s: %s', async (more, x, expected) => {
    expect(await outcomeOf(more, x)).toBe(expected)
  })
})

describe('at the start', () => {
  const machine: Machine = {
    uid: 1000,
    userName: 'cinnabar',
    user: (name) => (name === 'other' ? { uid: 7, gid: 8 } : undefined),
    isProgram: (path) => path === '/usr/bin/there',
    isDirectory: (path) => path === '/',
  }
  const find = (toml: string, on: Partial<Machine> = {}): unknown => {
    try {
      return locatePrograms(execTables(`[[exec]]\nname = "exec.a"\n${toml}`), { ...machine, ...on })
    } catch (error) {
      return error instanceof ConfigError ? error.message : error
    }
  }

  it('are known to read a directory if their user may', () => {
    const directory = mkdtempSync(join(tmpdir(), 'cinnabar-'))
    const tables = execTables(
      ['', 'user = "cinnabar"', 'user = "other"']
        .map((user, index) => `[[exec]]\nname = "exec.${index}"\nargv = ["there"]\n${user}\n`)
        .join(''),
    )
    const readers = (mode: number): string[] => {
      chmodSync(directory, mode)
      return tablesThatRead(directory, tables, { ...machine, uid: 0 }).map(({ name }) => name)
    }
    expect(readers(0o700)).toEqual(['exec.0', 'exec.1'])
    expect(readers(0o755)).toEqual(['exec.0', 'exec.1', 'exec.2'])
    rmSync(directory, { recursive: true })
  })

  it.each([
    ['argv = ["/usr/bin/there"]', {}, [{ path: '/usr/bin/there', user: undefined }]],
    ['argv = ["there"]\nuser = "cinnabar"', {}, [{ path: '/usr/bin/there', user: undefined }]],
    [
      'argv = ["there"]\nuser = "other"',
      { uid: 0, userName: 'root' },
      [{ path: '/usr/bin/there', user: { uid: 7, gid: 8 } }],
    ],
    [
      'argv = ["there"]\nuser = "other"',
      {},
      '[[exec]] exec.a: `user`: the server runs as cinnabar and cannot become other; only root can',
    ],
    [
      'argv = ["there"]\nuser = "nobody"',
      { uid: 0 },
      '[[exec]] exec.a: `user`: there is no user nobody in /etc/passwd',
    ],
    ['argv = ["/bin/missing"]', {}, '[[exec]] exec.a: `argv`: /bin/missing is not an executable file'],
    [
      'argv = ["./there"]',
      {},
      expect.stringContaining('[[exec]] exec.a: `argv`: no program "./there" in /usr/local/sbin:'),
    ],
    ['argv = [""]', {}, expect.stringContaining('no program ""')],
    ['argv = ["there"]\ndirectory = "/none"', {}, '[[exec]] exec.a: `directory`: there is no directory /none'],
  ])('%s', (toml, on, expected) => {
    expect(find(toml, on)).toEqual(expected)
  })

  it('what cannot be started after all has failed', async () => {
    const [tableOf] = execTables('[[exec]]\nname = "exec.a"\nargv = ["/bin/gone"]')
    const control = execControl(tableOf as NonNullable<typeof tableOf>, { path: '/bin/gone', user: undefined }, clock)
    const result = await control.prepare(new Map(), context)(going)
    expect(result).toMatchObject({
      outcome: 'failed',
      detail: expect.stringContaining('the program could not be started: '),
    })
  })
})
