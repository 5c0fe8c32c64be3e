/**
 * What rigs of EXECUTE share: a program that writes a line when it begins and one when it ends, to a file that all servers write to, and
 * what is read afterwards, of that file and of the audit log.
 */
import { existsSync, readFileSync } from 'node:fs'
import { verifyAudit } from '../../../server/kernel/accounts/audit/verify.ts'
import { withAuditFile } from '../../../storage/sqlite/audit-file.ts'
import { Tally } from '../../rig/rig.ts'
import type { Random } from '../../support/random.ts'
import type { Json } from '../../support/records.ts'

/** The control that runs it, with the arguments `name` and `sleep`. */
export const WRITE = 'exec.write'
/** How long it runs at most, beyond what writing takes. */
export const MOST_SLEEP_MS = 40

/**
 * The table of the program, and of a tenant that may EXECUTE as often as the rig does. What the operator writes in the argument of
 * `sh -c` is the operator's own; name and time stand in arguments after it.
 */
export function writingTables(file: string): string {
  const script = `echo "begin $1" >> ${file}; sleep "$2"; echo "end $1" >> ${file}`
  const parameter = (name: string, pattern: string): string =>
    `[[exec.parameter]]\nname = "${name}"\npattern = "${pattern}"\n`
  return (
    `[quota]\ncontrols_per_minute = 0\n` +
    `[[exec]]\nname = "${WRITE}"\nargv = ["/bin/sh", "-c", ${JSON.stringify(script)}, "sh", "{name}", "{sleep}"]\n` +
    `dry_run_argv = ["/bin/echo", "would write {name}"]\nanywhere = true\n` +
    `max_running = 64\n${parameter('name', 'c[0-9]+')}${parameter('sleep', '0[.][0-9]+')}`
  )
}

export function randomSleep(random: Random): string {
  return `0.${String(random.below(MOST_SLEEP_MS)).padStart(3, '0')}`
}

/** How often each line was written: `begin NAME` and `end NAME`. */
export function writtenIn(file: string): Tally {
  return tallied(existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [])
}

interface AuditRecord {
  readonly action: string
  readonly args: Json
}

/** The records of the audit log of a server that has ended. Throws if it is not whole. */
export function auditOf(database: string): readonly AuditRecord[] {
  const finding = verifyAudit(database)
  if (!finding.whole) throw new Error(`the audit log is broken at ${finding.at}: ${finding.problem}`)
  const text = (of: unknown): string => (of instanceof Uint8Array ? Buffer.from(of).toString() : String(of))
  return withAuditFile(database, (file) =>
    [...file.records].map(({ action, args }) => ({ action: text(action), args: JSON.parse(text(args)) })),
  )
}

/** How often there is a record of an action for the program with each name. */
export function recordedNames(records: readonly AuditRecord[], action: string): Tally {
  return tallied(records.filter((one) => one.action === action).map(({ args }) => args.name ?? ''))
}

function tallied(names: readonly string[]): Tally {
  const tally = new Tally()
  for (const name of names) tally.add(name)
  return tally
}
