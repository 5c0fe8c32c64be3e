export const maxTokens = 10
