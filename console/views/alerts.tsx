/** Alerts, those that were, the rules that they come from, silences, and who was told: one page of the view for each. */
import type { VNode } from 'preact'
import { ActiveAlerts } from '../parts/active-alerts.tsx'
import { AlertHistoryList } from '../parts/alert-history.tsx'
import { NotificationLog } from '../parts/notification-log.tsx'
import { RuleList } from '../parts/rule-list.tsx'
import { SilenceList } from '../parts/silence-list.tsx'
import { linkTo, type ViewProps } from '../route.ts'

interface Tab {
  readonly tab: string
  readonly title: string
  readonly Content: (props: ViewProps) => VNode | null
}

const FIRST: Tab = { tab: '', title: 'Alerts', Content: ActiveAlerts }
const TABS: readonly Tab[] = [
  FIRST,
  { tab: 'history', title: 'History', Content: AlertHistoryList },
  { tab: 'rules', title: 'Rules', Content: RuleList },
  { tab: 'silences', title: 'Silences', Content: SilenceList },
  { tab: 'notifications', title: 'Notifications', Content: NotificationLog },
]

/** The pages of the view besides the first one, with their titles. */
export const ALERT_PAGES: ReadonlyMap<string, string> = new Map(TABS.slice(1).map(({ tab, title }) => [tab, title]))

export function AlertsView(props: ViewProps) {
  const { object } = props.router.route.value
  const { tab: shown, title, Content } = TABS.find(({ tab }) => tab === object) ?? FIRST
  return (
    <>
      <header>
        <h1>{title}</h1>
        <nav class="choices tabs" aria-label="Alerts">
          {TABS.map(({ tab, title: name }) => (
            <a key={tab} href={linkTo('alerts', tab)} aria-current={tab === shown ? 'page' : undefined}>
              {name}
            </a>
          ))}
        </nav>
      </header>
      <Content key={shown} {...props} />
    </>
  )
}
