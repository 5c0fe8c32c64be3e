/** `cinnabar audit verify`: reads the audit log directly from the database and checks its chain of hashes. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Command, InvalidArgumentError } from 'commander'
import { readConfiguration } from '../configuration.ts'
import { ExitCode, Failure } from '../failure.ts'
import type { Cli } from '../session.ts'

interface VerifyOptions {
  readonly config?: string
  readonly database?: string
  readonly from?: { readonly number: number; readonly hash: string }
  readonly json?: boolean
}

/** The name of the file in the data directory. */
const DATABASE = 'cinnabar.db'

const AFTER_HELP = `
A server may be running on the database. Anyone who can write to the database could recompute all hashes: store the last line
of the output elsewhere, and pass it as --from the next time.`

export function addAuditVerify(audit: Command, { terminal }: Cli): void {
  audit
    .command('verify')
    .description('check in the database that no record was changed, removed or inserted; exits with 1 if one was')
    .option('--config <file>', "the server's configuration, which says where the database is (CINNABAR_CONFIG)")
    .option('--database <file>', 'the database or a copy of it')
    .option('--from <number:hash>', 'record from an earlier check, which must be unchanged', hashedRecord)
    .option('--json', 'print one JSON object')
    .addHelpText('after', AFTER_HELP)
    .action(async ({ config, database, from, json = false }: VerifyOptions) => {
      const file = database ?? join((await readConfiguration(config, terminal.env)).producer.dataDir, DATABASE)
      if (!existsSync(file)) {
        const advice = database === undefined ? '; give the file with --database, or the --config of the server' : ''
        throw new Failure(ExitCode.USAGE, `there is no database ${file}${advice}`)
      }
      const { verifyAudit } = await import('../../server/start/server.ts')
      const finding = orFailure(() => verifyAudit(file, from))
      if (json) await terminal.print(JSON.stringify(finding))
      if (!finding.whole) {
        const intact =
          finding.records === 1
            ? 'the one record before it is intact'
            : `the ${finding.records} records before it are intact`
        const message = `the audit log is not intact at record ${finding.at}: ${finding.problem}\n${intact}`
        throw new Failure(ExitCode.FAILED, message)
      }
      if (json) return
      const { records, first, last, hash } = finding
      if (records === 0) return terminal.print('the audit log is empty')
      await terminal.print(`${records} records, ${first} to ${last}: all intact\n${last}:${hash}`)
    })
}

/** Reports an error of the storage in its own words. */
function orFailure<T>(verify: () => T): T {
  try {
    return verify()
  } catch (error) {
    if (error instanceof Error && error.name === 'StorageError') {
      throw new Failure(ExitCode.FAILED, error.message, { cause: error })
    }
    throw error
  }
}

function hashedRecord(text: string): { number: number; hash: string } {
  const [, number, hash] = /^([1-9]\d{0,14}):([0-9a-fA-F]{64})$/.exec(text) ?? []
  if (number !== undefined && hash !== undefined) return { number: Number(number), hash: hash.toLowerCase() }
  throw new InvalidArgumentError('Expected NUMBER:HASH as printed by `cinnabar audit verify`.')
}
