/** The rows of rules, their alerts, and what was told of them to whom (docs/alerts.md). */
import { columnKinds } from './columns.ts'
import { row } from './row-declaration.ts'

const { number, text, bytes, word, optional } = columnKinds

export const ALERT_ROWS = {
  /** A group of rules: how far it was evaluated. */
  'alert group': row(
    // As JSON: [tenant, file, group]. The last time that was evaluated, milliseconds since 1970. The number of its last transition.
    { name: text, reached: number, sequence: number },
    {
      tag: 22,
      table: 'alert_group',
      key: ['name'],
      removal: 'key',
      recoveredAs: 'alertGroups',
      leftOut: 'they are evaluated from now on',
    },
  ),
  /** An alert that is pending or fires, or has ended a short time ago. */
  alert: row(
    {
      /** As JSON: [tenant, file, group, rule, how many rules of this name come before it]. */
      rule: text,
      /** As JSON: pairs of a name and a text, ascending by name. The value is a number as text: it may be NaN. */
      labels: text,
      annotations: text,
      state: word({ pending: 0, firing: 1, inactive: 2 }),
      value: text,
      /** In milliseconds since 1970: since when it holds, fires, and fires although it holds no more; and when it ended. */
      active: number,
      ...{ fired: optional(number), kept: optional(number), resolved: optional(number) },
      /** Since when it goes on without data. */
      missing: optional(number),
    },
    {
      tag: 23,
      table: 'alert',
      key: ['rule', 'labels'],
      removal: 'key',
      recoveredAs: 'alerts',
      leftOut: 'they begin anew',
    },
  ),
  /** A group of alerts of a notifier: what it was told last, and what is under way. */
  'notify group': row(
    {
      /** `tenant/name` */
      notifier: text,
      /** The labels that its alerts have in common, as JSON: pairs of a name and a text, ascending by name. */
      labels: text,
      /** Of its last notification: 1, 2, 3 ... */
      number,
      /** When it was told last, and when it is due; milliseconds since 1970. 0: never, and not by itself. */
      told: number,
      due: number,
      /** The notification under way as JSON; '' if there is none. */
      sending: text,
    },
    {
      tag: 24,
      table: 'notify_group',
      key: ['notifier', 'labels'],
      removal: 'key',
      recoveredAs: 'notifyGroups',
      leftOut: 'their alerts are told again',
    },
  ),
  /** An alert as a notifier knows it. */
  'notify alert': row(
    {
      /** `tenant/name` */
      notifier: text,
      fingerprint: text,
      /** As JSON: labels, annotations, state, value, times. */
      alert: text,
      /** What was told of it last. */
      told: word({ nothing: 0, firing: 1 }),
    },
    {
      tag: 25,
      table: 'notify_alert',
      key: ['notifier', 'fingerprint'],
      removal: 'key',
      recoveredAs: 'notifyAlerts',
      leftOut: 'nothing is told of them until they change',
    },
  ),
  /** A notification that was sent: the log of what was told to whom. */
  notification: row(
    {
      /** `tenant/name` */
      notifier: text,
      /** By which a receiver knows what it has already. */
      key: text,
      /** When it was answered, milliseconds since 1970. */
      at: number,
      /** The labels of its group as JSON, and how many alerts of it fire and have ended. */
      labels: text,
      firing: number,
      resolved: number,
      attempts: number,
      outcome: word({ delivered: 0, refused: 1 }),
      /** The answer, for people. */
      detail: text,
      /** The fingerprints of the first alerts in it as JSON; '[]' if it is from before format 22. */
      alerts: text,
    },
    {
      tag: 32,
      // The form of format 21 of the database.
      earlier: [{ tag: 26, lacks: { alerts: '[]' } }],
      table: 'notification',
      key: ['notifier', 'key'],
      order: 'stored',
      removal: 'key',
      recoveredAs: 'notifications',
      leftOut: 'they are not in the log of notifications',
    },
  ),
  /** Alerts of which nobody is told for a while. */
  silence: row(
    {
      tenant: text,
      id: text,
      kind: word({ silence: 0, acknowledgement: 1 }),
      /** As JSON: matchers, each as text. */
      matchers: text,
      /** Milliseconds since 1970. */
      begins: number,
      ends: number,
      author: text,
      comment: text,
    },
    {
      tag: 27,
      table: 'silence',
      key: ['tenant', 'id'],
      removal: 'key',
      recoveredAs: 'silences',
      leftOut: 'their alerts are told again',
    },
  ),
  /** A rule file that a user has put. Its rules read as this user may, so that one that is damaged might read what nobody gave it. */
  'rule file': row(
    {
      tenant: text,
      name: text,
      /** The user, whose name is for people, and the scope of the credential as it was then; empty if it had none. */
      user: number,
      author: text,
      scope: text,
      /** Milliseconds since 1970. */
      put: number,
      /** The file, in YAML. */
      rules: text,
      /** That was used; 0 if none was. */
      token: number,
    },
    {
      tag: 31,
      // The form of format 20 of the database.
      earlier: [{ tag: 28, lacks: { token: 0 } }],
      table: 'rule_file',
      key: ['tenant', 'name'],
      removal: 'key',
      recoveredAs: 'ruleFiles',
      hasChecksum: true,
      leftOut: 'they are not evaluated; put them again',
    },
  ),
  /** A notifier that a user has put. It reads as this user may, so that one that is damaged might tell what nobody gave it. */
  notifier: row(
    {
      tenant: text,
      name: text,
      /** The user, whose name is for people; the token that was used, 0 if none was, and its scope; empty if it had none. */
      user: number,
      author: text,
      token: number,
      scope: text,
      /** Milliseconds since 1970. */
      put: number,
      /** What its table says, in TOML, without anything secret: of its URL the beginning. */
      settings: text,
      /** Its URL, and the contents of its files, as JSON, sealed with a key that follows from the secret of the data. */
      sealed: bytes,
    },
    {
      tag: 30,
      table: 'notifier',
      key: ['tenant', 'name'],
      removal: 'key',
      recoveredAs: 'notifiers',
      hasChecksum: true,
      leftOut: 'they tell nobody; put them again',
    },
  ),
} as const
