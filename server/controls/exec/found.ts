/** What an `[[exec]]` table names and only the machine knows: the program and the user. Judged once, when the server starts. */
import { accessSync, constants, readFileSync, statSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { ConfigError, type ConfigProblem } from '../../config/errors.ts'
import type { ExecTable } from '../../controls/exec/config.ts'
import { fill } from './template.ts'

export const FIXED_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

export interface FoundUser {
  readonly uid: number
  readonly gid: number
}

export interface Found {
  readonly path: string
  /** Undefined: the server's own. */
  readonly user: FoundUser | undefined
}

/** What it is looked up in; tests have their own. */
export interface Machine {
  readonly uid: number
  readonly userName: string
  /** Of a line `name:x:uid:gid:...`; undefined if there is none. */
  user(name: string): FoundUser | undefined
  isProgram(path: string): boolean
  isDirectory(path: string): boolean
}

export const thisMachine: Machine = {
  uid: process.getuid?.() ?? 0,
  get userName() {
    return userInfo().username
  },
  user(name) {
    const line = readFileSync('/etc/passwd', 'utf8')
      .split('\n')
      .find((text) => text.startsWith(`${name}:`))
    const [, , uid, gid] = line?.split(':') ?? []
    return uid === undefined || gid === undefined ? undefined : { uid: Number(uid), gid: Number(gid) }
  },
  isProgram(path) {
    try {
      accessSync(path, constants.X_OK)
      return statSync(path).isFile()
    } catch {
      return false
    }
  },
  isDirectory: (path) => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false,
}

/** All of them, in their order. Throws ConfigError with every problem. */
export function findAll(tables: readonly ExecTable[], machine: Machine = thisMachine): Found[] {
  const problems: ConfigProblem[] = []
  const found = tables.map((table) => {
    const tell = (message: string): void => {
      problems.push({ source: `[[exec]] ${table.name}`, message })
    }
    return { path: findProgram(table, machine, tell), user: findUser(table, machine, tell) }
  })
  if (problems.length > 0) throw new ConfigError(problems)
  return found
}

type Tell = (message: string) => void

function findProgram({ argv, directory }: ExecTable, machine: Machine, tell: Tell): string {
  const name = fill(argv[0], () => undefined) ?? ''
  if (!machine.isDirectory(directory)) tell(`\`directory\`: there is no directory ${directory}`)
  if (name.startsWith('/')) {
    if (!machine.isProgram(name)) tell(`\`argv\`: ${name} is no file that may be executed`)
    return name
  }
  const paths = name === '' || name.includes('/') ? [] : FIXED_PATH.split(':').map((folder) => join(folder, name))
  const path = paths.find((candidate) => machine.isProgram(candidate))
  if (path === undefined)
    tell(`\`argv\`: no program ${JSON.stringify(name)} in ${FIXED_PATH}; write its path from / on`)
  return path ?? ''
}

function findUser({ user }: ExecTable, machine: Machine, tell: Tell): FoundUser | undefined {
  if (user === '' || user === machine.userName) return undefined
  if (machine.uid !== 0) {
    tell(`\`user\`: the server runs as ${machine.userName} and cannot become ${user}; only root can`)
    return undefined
  }
  const found = machine.user(user)
  if (found === undefined) tell(`\`user\`: there is no user ${user} in /etc/passwd`)
  return found
}
