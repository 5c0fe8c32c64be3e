/** `cinnabar metrics`: the catalogue of metrics. */
import type { Command } from 'commander'
import { ExitCode, Failure } from '../failure.ts'
import { byNature } from '../format.ts'
import { formatTable, JSON_OPTION, type JsonOptions, jsonOf } from '../output.ts'
import { type AnswerRecord, fieldText, listMetrics, parametersText, similarMetric } from '../records.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'
import { withProgress } from '../terminal.ts'

export function addMetrics(program: Command, cli: Cli): void {
  const { terminal } = cli
  withLoginOptions(program.command('metrics'))
    .description('list the metrics that you can read')
    .argument('[pattern]', "names to list; * matches anything: 'host.cpu.*'")
    .option(...JSON_OPTION)
    .action((pattern: string | undefined, options: JsonOptions) =>
      withConsumer(cli, options, async (consumer) => {
        const metrics = await withProgress(terminal, 'reading the catalogue', listMetrics(consumer, pattern))
        if (metrics.length === 0) {
          const similar = pattern === undefined ? '' : await similarMetric(consumer, pattern)
          throw new Failure(ExitCode.FAILED, `no metric matches ${pattern ?? '*'}${similar && `.${similar}`}`)
        }
        if (options.json) return terminal.print(metrics.map(jsonOf).join('\n'))
        const width = terminal.screen?.size().columns
        const sorted = [...metrics].sort((a, b) => byNature(fieldText(a, 'name'), fieldText(b, 'name')))
        const heads = ['name', 'kind', 'type', 'unit', 'parameters', 'description'].map((head) => ({ head }))
        await terminal.print(formatTable(heads, sorted.map(toRow), terminal.colors, width))
      }),
    )
}

function toRow(metric: AnswerRecord): string[] {
  const text = (name: string) => fieldText(metric, name)
  return [
    text('name'),
    text('kind'),
    text('type'),
    text('unit') === '1' ? '' : text('unit'),
    parametersText(metric),
    text('description'),
  ]
}
