/** The groups of a notifier, by a clock that is handed in, with what is stored of them, and what is told. */
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import type { NotifyAlertRow, NotifyGroupRow } from '../../../../server/kit/peer.ts'
import type { NotifiedAlert } from '../../../../server/wings/notify/alert.ts'
import type { GroupingRules } from '../../../../server/wings/notify/group-members.ts'
import { NotifyGroups } from '../../../../server/wings/notify/groups.ts'
import type { Notification } from '../../../../server/wings/notify/notification.ts'
import type { Change } from '../../../../storage/store.ts'

const SECOND = 1_000
const RULES: GroupingRules = {
  groupBy: ['alertname'],
  groupWaitMs: 30 * SECOND,
  groupIntervalMs: 300 * SECOND,
  repeatIntervalMs: 14_400 * SECOND,
  sendResolved: true,
  repeatsMuted: false,
  repeatsEndedMs: 0,
}

/** What outlives a process. */
class Disk {
  readonly groups = new Map<string, NotifyGroupRow>()
  readonly alerts = new Map<string, NotifyAlertRow>()

  change(change: Change): void {
    if ('put' in change) {
      if (change.put === 'notify group') this.groups.set(change.row.labels, change.row)
      if (change.put === 'notify alert') this.alerts.set(change.row.fingerprint, change.row)
    } else if (change.remove === 'notify group') this.groups.delete(change.labels)
    else if (change.remove === 'notify alert') this.alerts.delete(change.fingerprint)
  }
}

export class ToldGroups {
  readonly disk = new Disk()
  nowMs = 1_700_000_000_000
  readonly muted = new Set<string>()
  /** What may not be told at all. */
  readonly hidden = new Set<string>()
  isHeld = false
  /** What the rules know of alerts since their transitions. */
  readonly said = new Map<string, Pick<NotifiedAlert, 'value' | 'annotations'>>()
  groups = this.#made({})

  /** A process takes over, by what is stored. */
  start(rules: Partial<GroupingRules> = {}): void {
    this.groups = this.#made(rules)
  }

  #made(rules: Partial<GroupingRules>): NotifyGroups {
    const { muted } = this
    return new NotifyGroups({
      notifier: 'default/n',
      rules: { ...RULES, ...rules },
      journal: this.disk,
      wallMs: () => this.nowMs,
      groups: [...this.disk.groups.values()],
      alerts: [...this.disk.alerts.values()],
      saidOf: ({ fingerprint }) => this.said.get(fingerprint),
      mayTell: ({ fingerprint }) => !this.hidden.has(fingerprint),
      isMuted: function* ({ fingerprint }) {
        yield
        return muted.has(fingerprint)
      },
      isHeld: () => this.isHeld,
    })
  }

  pass(seconds: number): void {
    this.nowMs += seconds * SECOND
  }

  alert(host: string, state: NotifiedAlert['state'] = 'firing', alertname = 'Down'): NotifiedAlert {
    const { nowMs } = this
    return {
      labels: [
        ['alertname', alertname],
        ['host', host],
      ],
      annotations: [],
      state,
      value: '1',
      sinceMs: nowMs,
      firedMs: nowMs,
      endedMs: state === 'firing' ? 0 : nowMs,
      group: 'g',
      rule: alertname,
      fingerprint: `${alertname} ${host}`,
    }
  }

  textOf({ alerts }: Notification): string {
    return alerts.map(({ labels, state }) => `${labels.find(([name]) => name === 'host')?.[1]} ${state}`).join(', ')
  }

  /** What is told now: each notification arrives at once. */
  told(): string[] {
    const texts: string[] = []
    for (let next = finish(this.groups.next()); next !== undefined; next = finish(this.groups.next())) {
      texts.push(this.textOf(next))
      this.groups.told(next)
    }
    return texts
  }
}
