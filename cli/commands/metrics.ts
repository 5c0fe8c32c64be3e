/** `cinnabar metrics`: the catalogue. */
import type { Command } from 'commander'
import { listMetrics } from '../catalogue.ts'
import { ExitCode, Failure } from '../failure.ts'
import type { LoginOptions } from '../login.ts'
import { jsonOf } from '../output/measured.ts'
import { formatTable } from '../output/table.ts'
import { whileWaiting } from '../progress.ts'
import { fieldOf, type Record, recordsOf, textOf } from '../records.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'

export function addMetrics(program: Command, cli: Cli): void {
  const { terminal } = cli
  withLoginOptions(program.command('metrics'))
    .description('list the metrics that can be read')
    .argument('[pattern]', "which ones; * stands for anything: 'host.cpu.*'")
    .option('--json', 'one JSON object per line')
    .action((pattern: string | undefined, options: LoginOptions & { json?: boolean }) =>
      withConsumer(cli, options, async (consumer) => {
        const metrics = await whileWaiting(terminal, 'reading the catalogue', listMetrics(consumer, pattern))
        if (metrics.length === 0) throw new Failure(ExitCode.FAILED, `no metric matches ${pattern ?? '*'}`)
        if (options.json) return terminal.print(metrics.map(jsonOf).join('\n'))
        const heads = ['name', 'kind', 'type', 'unit', 'parameters', 'description'].map((head) => ({ head }))
        await terminal.print(formatTable(heads, metrics.map(toRow), terminal.colors))
      }),
    )
}

function toRow(metric: Record): string[] {
  const text = (name: string) => textOf(metric, name)
  return [text('name'), text('kind'), text('type'), text('unit'), parameters(metric), text('description')]
}

/** As `agent [interval_ms]`: what may be left out stands in brackets. */
function parameters(metric: Record): string {
  const field = fieldOf(metric, 'parameters')
  const { records = [] } = (field && recordsOf(field)) ?? {}
  return records
    .map((parameter) => {
      const name = textOf(parameter, 'name')
      return fieldOf(parameter, 'optional')?.value === true ? `[${name}]` : name
    })
    .join(' ')
}
