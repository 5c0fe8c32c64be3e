/**
 * `cinnabar top`: shows the host and all values that arrive on one screen. Its channel stores nothing: values that arrive
 * while there is no connection are lost, and the screen continues with the current ones.
 */
import type { Command } from 'commander'
import { type ClientClock, realClock } from '../../client/clock.ts'
import type { Consumer } from '../../client/index.ts'
import { intervalSeconds, positiveNumber, splitWords, toTypedArguments } from '../arguments.ts'
import type { JsonOptions } from '../output.ts'
import { metricParameters } from '../records.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'
import { LiveDisplay, printTables } from '../top/display.ts'
import { TopFeed } from '../top/feed.ts'

interface TopOptions extends JsonOptions {
  readonly interval: number
  readonly count?: number
  readonly plain?: boolean
}

/** The families of metrics that other programs send. */
const OPEN_FAMILIES = ['gmetric.*', 'smon.*', 'mono.*', 'qmf.*']
const PIPE_COLUMNS = 120

const AFTER_HELP = `
Keys: 1-4 or left and right sort, r reverses, / filters, arrows, page keys, j k g G scroll, space pauses, h shows help,
q quits. If stdout is not a terminal, or TERM is dumb, and with --plain, --count or --json, tables are printed instead.`

export function addTop(program: Command, cli: Cli, clock: ClientClock = realClock()): void {
  withLoginOptions(program.command('top'))
    .description("show the host's load and all metrics that other programs send on a screen that updates itself")
    .argument(
      '[metric...]',
      "metrics, and arguments for all of them (default: all that other programs send): 'gmetric.cpu_*'",
    )
    .option('--interval <seconds>', 'interval between measurements of the host and between tables', intervalSeconds, 2)
    .option('--plain', 'print tables instead of drawing a screen')
    .option('--count <n>', 'stop after this many tables', positiveNumber)
    .option('--json', 'print one JSON object per row instead of a table; times in microseconds since 1970')
    .addHelpText('after', AFTER_HELP)
    .action((words: string[], options: TopOptions) => top(cli, clock, words, options))
}

async function top(cli: Cli, clock: ClientClock, words: readonly string[], options: TopOptions): Promise<void> {
  const { terminal } = cli
  const { names, assignments } = splitWords(words)
  const patterns = names.length === 0 ? OPEN_FAMILIES : names
  const { plain = false, json: isJson = false, count = Number.POSITIVE_INFINITY } = options
  const intervalMs = Math.round(options.interval * 1_000)
  // A dumb terminal, such as the shell of Emacs, shows the sequences that place the cursor.
  const isDumb = terminal.env['TERM'] === 'dumb'
  const screen = plain || isJson || isDumb || options.count !== undefined ? undefined : terminal.screen
  let url = ''
  let isDrawn = false
  const quiet: Cli = {
    // While the screen is shown, notes appear in its last line.
    terminal: { ...terminal, note: (text) => (isDrawn ? undefined : terminal.note(text)) },
    connect(...parameters) {
      url = String(parameters[0])
      return cli.connect(...parameters)
    },
  }
  const show = async (consumer: Consumer) => {
    const args = await toTypedArguments(assignments, () => metricParameters(consumer, patterns[0]!))
    const feed = new TopFeed(consumer, {
      patterns,
      args,
      intervalMs,
      url,
      clock,
      wallMs: Date.now,
      changed: () => live?.changed(),
    })
    const live = screen && new LiveDisplay(feed, { terminal, clock, url, patterns, screen })
    if (!live) {
      const columns = terminal.screen?.size().columns ?? PIPE_COLUMNS
      const feeding = feed.run()
      const over = feeding.catch(() => {})
      return Promise.race([
        feeding,
        printTables(feed, { terminal, clock, url, patterns, columns, isJson, intervalMs, count, over }),
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
