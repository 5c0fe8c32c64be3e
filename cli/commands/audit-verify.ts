/** `cinnabar audit verify`: reads the audit log in the database itself, and checks that its chain of hashes holds. */
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

/** In the data directory. */
const DATABASE = 'cinnabar.db'

const AFTER_HELP = `
A server may be running on the database. Whoever can write the database could compute all hashes anew: note down the last
line that is printed, elsewhere, and give it as --from the next time.`

export function addAuditVerify(audit: Command, { terminal }: Cli): void {
  audit
    .command('verify')
    .description('check in the database that no record was changed, left out or put in; exits with 1 where one was')
    .option('--config <file>', "the server's configuration, which says where the database is (CINNABAR_CONFIG)")
    .option('--database <file>', 'the database itself, or a copy')
    .option('--from <number:hash>', 'a record that was noted down: it still has to be what it was', noted)
    .option('--json', 'as one JSON object')
    .addHelpText('after', AFTER_HELP)
    .action(async ({ config, database, from, json = false }: VerifyOptions) => {
      const file = database ?? join((await readConfiguration(config, terminal.env)).producer.dataDir, DATABASE)
      if (!existsSync(file)) {
        const advice = database === undefined ? '; name one with --database, or the --config of the server' : ''
        throw new Failure(ExitCode.USAGE, `there is no database ${file}${advice}`)
      }
      const { verifyAudit } = await import('../../server/start/server.ts')
      const finding = orFailure(() => verifyAudit(file, from))
      if (json) await terminal.print(JSON.stringify(finding))
      if (!finding.whole) {
        const right =
          finding.records === 1 ? 'the one record before it holds' : `${finding.records} records before it hold`
        const message = `the audit log does not hold at record ${finding.at}: ${finding.problem}\n${right}`
        throw new Failure(ExitCode.FAILED, message)
      }
      if (json) return
      const { records, first, last, hash } = finding
      if (records === 0) return terminal.print('the audit log is empty')
      await terminal.print(`${records} records, ${first} to ${last}: all hold\n${last}:${hash}`)
    })
}

/** What the storage refuses to read is told as it says it. */
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

function noted(text: string): { number: number; hash: string } {
  const [, number, hash] = /^([1-9]\d{0,14}):([0-9a-fA-F]{64})$/.exec(text) ?? []
  if (number !== undefined && hash !== undefined) return { number: Number(number), hash: hash.toLowerCase() }
  throw new InvalidArgumentError('It has to be NUMBER:HASH, as `cinnabar audit verify` prints it.')
}
