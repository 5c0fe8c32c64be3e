/** `cinnabar exec`: runs a control and waits for its result. */
import { type Command, InvalidArgumentError } from 'commander'
import { type Arguments, BasicType, type Consumer, valueToJson } from '../../client/index.ts'
import { type Assignments, parseAssignments, toTypedArguments } from '../arguments.ts'
import { type ControlOutcome, checkOutcome, runControl, SECRET_ARGUMENTS } from '../control.ts'
import { ExitCode, Failure } from '../failure.ts'
import { formatTime, formatValue, jsonText } from '../format.ts'
import { readSecret } from '../login.ts'
import type { JsonOptions } from '../output.ts'
import { controlParameters, fieldNumber, fieldText, findField } from '../records.ts'
import { type Cli, checkConfidential, withConsumer, withLoginOptions } from '../session.ts'
import { type Terminal, withProgress } from '../terminal.ts'
import { waitingCalls } from './approvals.ts'

interface ExecOptions extends JsonOptions {
  readonly idempotencyKey?: string
  readonly dryRun?: boolean
  readonly argFile?: Assignments
}

/** What has no result by then may wait for approval. */
const NOTE_MS = 300

const AFTER_HELP = `
Where a rule has the call wait for approval, this command says so, and waits for the result; \`cinnabar approvals\` shows what
waits.

Exit codes: 0 ok, or dry-run (checked, not run); 1 refused, failed or timeout; 3 unknown: the server or the connection
ended in between, and it is not known whether the control ran. With the same --idempotency-key a control runs only once
within 24 hours: a repeated call returns the stored result.`

export function addExec(program: Command, cli: Cli): void {
  const { terminal } = cli
  withLoginOptions(program.command('exec'))
    .description('run a control and print its result; exits with 1 unless the outcome is ok, with 3 if it is unknown')
    .argument('<control>', 'name as listed by `cinnabar controls`')
    .argument('[name=value...]', 'arguments of the control, as shown by `cinnabar controls CONTROL`')
    .option(
      '--idempotency-key <key>',
      'name of this run: a repeated call with the same key does not run the control again',
    )
    .option('--dry-run', 'check rights and arguments without running the control, or run what it does as a dry run')
    .option('--arg-file <name=file>', 'read a secret argument from the first line of a file; may be repeated', argFile)
    .option('--json', 'print one JSON object; time in microseconds since 1970')
    .addHelpText('after', AFTER_HELP)
    .action(async (control: string, words: string[], options: ExecOptions) => {
      const assignments = parseAssignments(words)
      const shown = SECRET_ARGUMENTS.find((name) => assignments.has(name))
      if (shown) {
        const advice = `others can see the command line: use --arg-file ${shown}=FILE`
        throw new Failure(ExitCode.USAGE, `the argument ${shown} is a secret, and ${advice}`)
      }
      await withConsumer(cli, options, async (consumer) => {
        const { argFile = new Map<string, string>(), idempotencyKey, dryRun } = options
        if (argFile.size > 0) checkConfidential(consumer, 'the content of a file')
        const args: Arguments = {
          ...(await toTypedArguments(assignments, () => controlParameters(consumer, control))),
          ...(await readAll(argFile)),
          ...(idempotencyKey === undefined ? {} : { idempotency_key: idempotencyKey }),
          ...(dryRun ? { dry_run: true } : {}),
        }
        const result = await withWaitingNote(terminal, consumer, (onTaken) =>
          withProgress(terminal, `${control} has no result yet`, runControl(consumer, control, args, onTaken)),
        )
        await terminal.print(options.json ? toJson(control, result) : toText(result))
        if (result.outcome === 'dry-run') terminal.note('dry run: nothing was done')
        checkOutcome(control, result)
      })
    })

  async function readAll(files: Assignments): Promise<Record<string, string>> {
    const secrets: Record<string, string> = {}
    for (const [name, file] of files) secrets[name] = await readSecret(file, terminal)
    return secrets
  }
}

/** Says, once, that the call waits for approval: whose, until when, and by which command, if it has no result after a moment. */
async function withWaitingNote<T>(
  terminal: Terminal,
  consumer: Consumer,
  run: (onTaken: (result: number) => void) => Promise<T>,
): Promise<T> {
  let isOver = false
  let timer: ReturnType<typeof setTimeout> | undefined
  const look = async (result: number): Promise<void> => {
    // Older servers have no such metric, and some roles may not read it.
    const waiting = await waitingCalls(consumer).catch(() => [])
    const own = waiting.find((one) => findField(one, 'own')?.value === true && fieldNumber(one, 'result') === result)
    if (own === undefined || isOver) return
    const [id, role, until] = [fieldText(own, 'id'), fieldText(own, 'role'), formatTime(fieldNumber(own, 'until'))]
    terminal.note(
      `it waits for the approval of a user of the role ${role} until ${until}: ${terminal.program} approve ${id}`,
    )
  }
  try {
    return await run((result) => {
      timer = setTimeout(() => void look(result), NOTE_MS)
    })
  } finally {
    isOver = true
    clearTimeout(timer)
  }
}

function toJson(control: string, { value, ...result }: ControlOutcome): string {
  return jsonText({ control, ...result, value: valueToJson(value) })
}

function toText({ outcome, detail, value }: ControlOutcome): string {
  const text = detail ? `${outcome}: ${detail}` : outcome
  return value.type === BasicType.VOID ? text : `${text}\n${formatValue(value)}`
}

function argFile(text: string, before: Assignments = new Map()): Assignments {
  const at = text.indexOf('=')
  if (at < 1 || at === text.length - 1) throw new InvalidArgumentError('Expected the name of an argument and a file.')
  return new Map([...before, [text.slice(0, at), text.slice(at + 1)]])
}
