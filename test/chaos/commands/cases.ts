/**
 * Sequences that once failed, each with what was wrong. As text, since a seed means something else when a command is added.
 * Whoever repairs what a run finds adds its sequence here.
 */
export const cases: Readonly<Record<string, string>> = {
  'losses of one reason that stand side by side were reported by two GAPs': `
    hoard 0 0 0, emit 0 0 0, purge 0 0 0, emit 0 0 0, purge 0 0 0`,
  'what a channel lost by becoming not durable was reported as damage of the storage': `
    defChannel 0 0 0, hold 0 0 0, follow 0 0 0, configure 0 137 50, get 0 0 69, restart 0 0 0`,
  "a pattern's answer that waited on its channel, copied to a keep-latest one": `
    hoard 0 191 0, defChannel 0 108 0, defChannel 0 0 0, get 0 0 11, setChannel 0 197 0, subscribe 0 0 166`,
  'a STOP on a channel that is not durable took the new values after a restart': `
    subscribe 153 0 0, connect 7 0 0, hoard 0 0 0, defChannel 0 90 0, get 0 0 8, connect 15 0 0, stop 0 0 118,
    buffer 0 0 58, crash 0 0 0, emit 0 0 0`,
  'a GET that STOP cancelled while its response was held': `
    follow 0 0 0, defChannel 0 0 0, hold 0 0 0, buffer 0 0 9, emit 0 0 0, get 0 0 9, stop 0 0 9, complete 0 0 0`,
  'a STOP after a GET of a list for another channel, whose response was held': `
    hoard 0 203 0, crash 0 0 0, hold 0 0 0, emit 0 0 0, get 0 0 202, stop 0 13 0`,
  'a COMMIT of what was not sent yet, and a crash before it is stored': `
    follow 0 42 0, connect 0 0 0, hold 0 0 0, subscribe 0 82 73, emit 230 224 160, disconnect 148 211 49,
    complete 99 215 47, follow 75 0 55, emit 158 216 97, complete 125 87 236, commit 224 252 42, emit 11 64 43,
    complete 240 165 95, crash 36 12 16, emit 221 43 114`,
  'an answer to GET on a channel with limits, where the GET may have released a GAP': `
    hoard 0 0 0, defChannel 0 53 0, buffer 0 0 103, get 0 0 229`,
  'a loss of a channel that is not durable, reported before a restart': `
    follow 0 0 0, defChannel 0 186 0, configure 0 169 182, subscribe 0 0 21, emit 0 0 0, tick 34 0 0,
    setChannel 0 37 0, restart 0 0 0, setChannel 0 0 0`,
}
