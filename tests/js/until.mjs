export const until = async (holds, limitMs = 30_000) => {
  const endMs = Date.now() + limitMs;
  for (;;) {
    const found = await holds();
    if (found) return found;
    if (Date.now() > endMs) throw new Error(`not within ${limitMs} ms: ${holds}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
};
