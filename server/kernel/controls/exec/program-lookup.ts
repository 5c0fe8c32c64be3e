/** Looks up the program and the user that an `[[exec]]` table names, once when the server starts. */
import { accessSync, constants, readFileSync, statSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { ConfigError, type ConfigProblem } from '../../config/errors.ts'
import type { Logger } from '../../core/log.ts'
import type { ExecTable, ProgramTemplate } from './config.ts'
import { fillTemplate } from './template.ts'

export const FIXED_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

export interface ProgramUser {
  readonly uid: number
  readonly gid: number
}

export interface LocatedProgram {
  readonly path: string
  /** Of the program of a dry run, if there is one. */
  readonly dryRunPath?: string
  /** undefined for the server's own user. */
  readonly user: ProgramUser | undefined
}

/** The machine on which programs and users are looked up; tests have their own. */
export interface Machine {
  readonly uid: number
  readonly userName: string
  /** Reads a user from its line `name:x:uid:gid:...`; returns undefined if there is none. */
  user(name: string): ProgramUser | undefined
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

/** Locates the programs of all tables, in order. Throws ConfigError with all problems. */
export function locatePrograms(tables: readonly ExecTable[], machine: Machine = thisMachine): LocatedProgram[] {
  const problems: ConfigProblem[] = []
  const found = tables.map((table) => {
    const report = (message: string): void => {
      problems.push({ source: `[[exec]] ${table.name}`, message })
    }
    const { argv, dryRunArgv, directory } = table
    if (!machine.isDirectory(directory)) report(`\`directory\`: there is no directory ${directory}`)
    return {
      path: findProgram('argv', argv, machine, report),
      ...(dryRunArgv && { dryRunPath: findProgram('dry_run_argv', dryRunArgv, machine, report) }),
      user: findUser(table, machine, report),
    }
  })
  if (problems.length > 0) throw new ConfigError(problems)
  return found
}

type Report = (message: string) => void

function findProgram(key: string, [program]: ProgramTemplate, machine: Machine, report: Report): string {
  const name = fillTemplate(program, () => undefined) ?? ''
  if (name.startsWith('/')) {
    if (!machine.isProgram(name)) report(`\`${key}\`: ${name} is not an executable file`)
    return name
  }
  const paths = name === '' || name.includes('/') ? [] : FIXED_PATH.split(':').map((folder) => join(folder, name))
  const path = paths.find((candidate) => machine.isProgram(candidate))
  if (path === undefined)
    report(`\`${key}\`: no program ${JSON.stringify(name)} in ${FIXED_PATH}; write its absolute path`)
  return path ?? ''
}

/** The tables whose programs can read a directory: those that run as a user who may. */
export function tablesThatRead(
  directory: string,
  tables: readonly ExecTable[],
  machine: Machine = thisMachine,
): readonly ExecTable[] {
  const { uid, gid, mode } = statSync(directory)
  return tables.filter((table) => {
    const user = findUser(table, machine, () => {})
    // The server's own user has to read it.
    if (user === undefined || user.uid === 0) return true
    return (mode & (user.uid === uid ? 0o400 : user.gid === gid ? 0o040 : 0o004)) !== 0
  })
}

/** Warns if programs can read the secrets in the data directory, which has to exist. */
export function warnOfReaders(log: Logger, directory: string, tables: readonly ExecTable[]): void {
  const controls = tablesThatRead(directory, tables).map(({ name }) => name)
  if (controls.length === 0) return
  log.warn({ controls, directory }, 'programs of [[exec]] can read the data directory: give them another `user`')
}

function findUser({ user }: ExecTable, machine: Machine, report: Report): ProgramUser | undefined {
  if (user === '' || user === machine.userName) return undefined
  if (machine.uid !== 0) {
    report(`\`user\`: the server runs as ${machine.userName} and cannot become ${user}; only root can`)
    return undefined
  }
  const found = machine.user(user)
  if (found === undefined) report(`\`user\`: there is no user ${user} in /etc/passwd`)
  return found
}
