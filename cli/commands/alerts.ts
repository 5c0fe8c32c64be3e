/** `cinnabar alerts` and `cinnabar rules list`: what is pending and fires, how it was, and what a server evaluates. */
import type { Command } from 'commander'
import { formatDuration } from '../format.ts'
import { formatTable, JSON_OPTION, type JsonOptions, type Listing, labelPairs, printList } from '../output.ts'
import { type AnswerRecord, fieldNumber, fieldsOf, fieldText, findField, queryAll } from '../records.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'
import { withProgress } from '../terminal.ts'
import { safeText } from '../width.ts'
import { addAlertsHistory } from './alerts-history.ts'
import { addNotifications, MATCHER_HELP } from './notifications.ts'

const MS_US = 1_000

export function addAlerts(program: Command, cli: Cli, wallMs: () => number = () => Date.now()): void {
  const { terminal } = cli
  const listing = (none: string): Listing => ({
    none,
    toText: (records, width) => {
      const heads = ['state', 'for', 'alert', 'value', 'labels', 'annotations', 'told', 'silence']
      const rows = records.map((record) => alertRow(record, wallMs()))
      return formatTable(
        heads.map((head) => ({ head })),
        rows,
        terminal.colors,
        width,
      )
    },
  })
  const alerts = withLoginOptions(program.command('alerts'))
    .description('list the alerts that are pending, or fire')
    .argument('[matcher...]', `${MATCHER_HELP}; without any, all alerts`)
    .option(...JSON_OPTION)
    .action((matchers: readonly string[], options: JsonOptions) =>
      withConsumer(cli, options, async (consumer) => {
        const args = matchers.length === 0 ? {} : { matchers: matchers.join('\n') }
        const next = (last: AnswerRecord) => ({ after: fieldNumber(last, 'alert') })
        const reading = queryAll(consumer, 'producer.alerts.active', args, next)
        const none = matchers.length === 0 ? 'no alert is pending, and none fires' : 'no alert matches'
        await printList(terminal, await withProgress(terminal, 'reading alerts', reading), options.json, listing(none))
      }),
    )
  addAlertsHistory(alerts, cli, wallMs)
  addNotifications(alerts, cli)
}

function alertRow(record: AnswerRecord, nowMs: number): readonly string[] {
  const { alertname = '', ...labels } = textsOf(record, 'labels')
  const sinceMs = (fieldNumber(record, 'fired') || fieldNumber(record, 'since')) / MS_US
  const state = fieldText(record, 'state')
  return [
    fieldNumber(record, 'missing_since') > 0 ? `${state}, no data` : state,
    formatDuration(Math.max(0, nowMs - sinceMs)),
    safeText(alertname),
    fieldText(record, 'value'),
    labelPairs(labels),
    labelPairs(textsOf(record, 'annotations')),
    fieldText(record, 'told'),
    fieldText(record, 'silence'),
  ]
}

export function addRulesList(rules: Command, cli: Cli): void {
  const { terminal } = cli
  const listing: Listing = {
    none: 'the server evaluates no rules',
    toText: (records, width) => {
      const heads = ['group', 'rule', 'type', 'state', 'health', 'every', 'took', 'file', 'error']
      return formatTable(
        heads.map((head) => ({ head })),
        records.map(ruleRow),
        terminal.colors,
        width,
      )
    },
  }
  withLoginOptions(rules.command('list'))
    .description('list the rules that a server evaluates, and how')
    .option(...JSON_OPTION)
    .action((options: JsonOptions) =>
      withConsumer(cli, options, async (consumer) => {
        const next = (last: AnswerRecord) => ({ after: fieldNumber(last, 'rule') })
        const reading = queryAll(consumer, 'producer.rules', {}, next)
        await printList(terminal, await withProgress(terminal, 'reading rules', reading), options.json, listing)
      }),
    )
}

function ruleRow(record: AnswerRecord): readonly string[] {
  const isAlert = fieldText(record, 'kind') === 'alert'
  const state =
    fieldNumber(record, 'firing') > 0 ? 'firing' : fieldNumber(record, 'pending') > 0 ? 'pending' : 'inactive'
  return [
    fieldText(record, 'group'),
    fieldText(record, 'name'),
    isAlert ? 'alerting' : 'recording',
    isAlert ? state : '',
    fieldText(record, 'health'),
    formatDuration(fieldNumber(record, 'interval') / MS_US),
    `${Math.round(fieldNumber(record, 'took') / MS_US)} ms`,
    // No two files have the same last part.
    fieldText(record, 'file').replace(/^.*\//, ''),
    fieldText(record, 'problem'),
  ]
}

/** The texts of a REC. */
function textsOf(record: AnswerRecord, name: string): Readonly<Record<string, string>> {
  const fields = fieldsOf(findField(record, name))
  return Object.fromEntries(fields.map((field) => [field.name, String(field.value)]))
}
