/**
 * `cinnabar top`: the host, and everything that comes in, on one screen. Its channel keeps nothing: what is missed while
 * there is no connection is gone, and the screen begins again with what there is then.
 */
import { type Command, InvalidArgumentError } from 'commander'
import { type ClientClock, realClock } from '../../client/clock.ts'
import type { Consumer } from '../../client/index.ts'
import { splitWords, toTypedArguments } from '../assignments.ts'
import { metricParameters } from '../catalogue.ts'
import type { LoginOptions } from '../login.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'
import { Feed } from '../top/feed.ts'
import { Live } from '../top/live.ts'
import { printPlain } from '../top/plain.ts'

interface TopOptions extends LoginOptions {
  readonly interval: number
  readonly count?: number
  readonly plain?: boolean
  readonly json?: boolean
}

/** The families of metrics that others send. */
const OPEN_FAMILIES = ['gmetric.*', 'smon.*', 'mono.*', 'qmf.*']
const MIN_INTERVAL_S = 0.1
const MAX_INTERVAL_S = 3_600
const PIPE_COLUMNS = 120

const AFTER_HELP = `
Keys: 1-4 or left and right sort, r turns round, / filters, arrows, page keys, j k g G scroll, space holds still,
h helps, q quits. Where the output is no terminal, and with --plain, --count or --json, tables are printed instead.`

export function addTop(program: Command, cli: Cli, clock: ClientClock = realClock()): void {
  withLoginOptions(program.command('top'))
    .description("the host's own load, and all that others send, on a screen that renews itself")
    .argument('[metric...]', "metrics, and arguments for all of them, instead of all that others send: 'gmetric.cpu_*'")
    .option('--interval <seconds>', 'how often the host is measured and a table is printed', seconds, 2)
    .option('--plain', 'print tables instead of drawing a screen')
    .option('--count <n>', 'end after so many tables', positive)
    .option('--json', 'one JSON object per row instead of a table; times in microseconds since 1970')
    .addHelpText('after', AFTER_HELP)
    .action((words: string[], options: TopOptions) => top(cli, clock, words, options))
}

async function top(cli: Cli, clock: ClientClock, words: readonly string[], options: TopOptions): Promise<void> {
  const { terminal } = cli
  const { names, assignments } = splitWords(words)
  const asked = names.length === 0 ? OPEN_FAMILIES : names
  const { plain = false, json: isJson = false, count = Number.POSITIVE_INFINITY } = options
  const intervalMs = Math.round(options.interval * 1_000)
  const screen = plain || isJson || options.count !== undefined ? undefined : terminal.screen
  let url = ''
  let isDrawn = false
  const quiet: Cli = {
    // On the screen it stands in the last line.
    terminal: { ...terminal, note: (text) => (isDrawn ? undefined : terminal.note(text)) },
    connect(...parameters) {
      url = parameters[0]
      return cli.connect(...parameters)
    },
  }
  const show = async (consumer: Consumer) => {
    const args = await toTypedArguments(assignments, () => metricParameters(consumer, asked[0]!))
    const feed = new Feed(consumer, { asked, args, intervalMs, url, clock, changed: () => live?.changed() })
    const live = screen && new Live(feed, { screen, colors: terminal.colors, clock, url, asked })
    if (!live) {
      const columns = terminal.screen?.size().columns ?? PIPE_COLUMNS
      const feeding = feed.run()
      const over = feeding.catch(() => {})
      return Promise.race([
        feeding,
        printPlain(feed, { terminal, clock, url, asked, columns, isJson, intervalMs, count, over }),
      ])
    }
    const undo = terminal.onInterrupt(() => live.quit())
    isDrawn = true
    const shown = live.run()
    try {
      await Promise.race([shown, feed.run()])
    } finally {
      live.quit()
      await shown
      isDrawn = false
      undo()
    }
  }
  await withConsumer(quiet, options, show, { durable: false })
}

function seconds(text: string): number {
  const number = Number(text)
  if (/^\d+(\.\d+)?$/.test(text) && number >= MIN_INTERVAL_S && number <= MAX_INTERVAL_S) return number
  throw new InvalidArgumentError(`It has to be a number of seconds from ${MIN_INTERVAL_S} to ${MAX_INTERVAL_S}.`)
}

function positive(text: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It has to be a whole number above 0.')
}
