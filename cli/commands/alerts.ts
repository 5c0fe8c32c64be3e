/** `cinnabar alerts` and `cinnabar rules list`: what a server evaluates, and what is pending and fires. */
import type { Command } from 'commander'
import { API_URL, askApi } from '../api.ts'
import { formatDuration, jsonText, printable } from '../format.ts'
import { httpUrlOf } from '../http.ts'
import { resolveToken, type TokenOptions, withTokenOptions } from '../login.ts'
import { formatTable, JSON_OPTION } from '../output.ts'
import type { Cli } from '../session.ts'
import { safeText } from '../width.ts'
import { addNotifications } from './notifications.ts'

const SECOND_MS = 1_000

interface ListOptions extends TokenOptions {
  readonly json?: boolean
}

type Texts = Readonly<Record<string, string>>

interface AnsweredAlert {
  readonly labels: Texts
  readonly annotations: Texts
  readonly state: string
  readonly activeAt: string
  readonly value: string
}

interface AnsweredRule {
  readonly name: string
  readonly type: string
  readonly state?: string
  readonly health: string
  readonly lastError?: string
  readonly evaluationTime: number
}

interface AnsweredGroup {
  readonly name: string
  readonly file: string
  readonly interval: number
  readonly rules: readonly AnsweredRule[]
}

export function addAlerts(program: Command, cli: Cli, wallMs: () => number = () => Date.now()): void {
  const { terminal } = cli
  const alerts = program.command('alerts')
  withTokenOptions(alerts, API_URL)
    .description('list the alerts that are pending, or fire')
    .option(...JSON_OPTION)
    .action(async (options: ListOptions) => {
      const { alerts } = (await answered('alerts', options, terminal)) as { readonly alerts: readonly AnsweredAlert[] }
      if (options.json && alerts.length > 0) return terminal.print(alerts.map(jsonText).join('\n'))
      if (alerts.length === 0) return terminal.note('no alert is pending, and none fires')
      const heads = ['state', 'for', 'alert', 'value', 'labels', 'annotations'].map((head) => ({ head }))
      const rows = alerts.map(({ state, activeAt, labels: { alertname = '', ...labels }, value, annotations }) => [
        printable(state),
        formatDuration(Math.max(0, wallMs() - Date.parse(activeAt))),
        safeText(alertname),
        String(Number(value)),
        labelPairs(labels),
        labelPairs(annotations),
      ])
      return terminal.print(formatTable(heads, rows, terminal.colors, terminal.screen?.size().columns))
    })
  addNotifications(alerts, cli)
}

export function addRulesList(rules: Command, { terminal }: Cli): void {
  withTokenOptions(rules.command('list'), API_URL)
    .description('list the rules that a server evaluates, and how')
    .option(...JSON_OPTION)
    .action(async (options: ListOptions) => {
      const { groups } = (await answered('rules', options, terminal)) as { readonly groups: readonly AnsweredGroup[] }
      if (options.json && groups.length > 0) return terminal.print(groups.map(jsonText).join('\n'))
      if (groups.length === 0) return terminal.note('the server evaluates no rules')
      const heads = ['group', 'rule', 'type', 'state', 'health', 'every', 'took', 'error'].map((head) => ({ head }))
      const rows = groups.flatMap(({ name: group, interval, rules }) =>
        rules.map(({ name, type, state = '', health, evaluationTime, lastError = '' }) => [
          safeText(group),
          safeText(name),
          printable(type),
          printable(state),
          printable(health),
          formatDuration(interval * SECOND_MS),
          `${Math.round(evaluationTime * SECOND_MS)} ms`,
          safeText(lastError),
        ]),
      )
      return terminal.print(formatTable(heads, rows, terminal.colors, terminal.screen?.size().columns))
    })
}

/** Rejects with Failure. */
async function answered(what: 'alerts' | 'rules', options: TokenOptions, terminal: Cli['terminal']): Promise<unknown> {
  const { token, from, tls } = await resolveToken(options, terminal, 'COLLECT alert')
  const url = await httpUrlOf(options, terminal, `${what} are asked of`)
  return askApi({ url, path: `/api/v1/${what}`, token, tls }, new URLSearchParams(), from, terminal)
}

export function labelPairs(texts: Texts): string {
  return Object.entries(texts)
    .map(([name, text]) => `${safeText(name)}=${safeText(text)}`)
    .join(' ')
}
