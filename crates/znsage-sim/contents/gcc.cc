#include <bits/stdc++.h>
#include <ext/pb_ds/assoc_container.hpp>
#include <ext/pb_ds/tree_policy.hpp>
#include <ext/rope>
#include <experimental/filesystem>
#include <experimental/simd>
int main(int argc, char **argv)
{
	std::ifstream in(argv[1]);
	std::regex word("[A-Za-z_][A-Za-z_0-9]*");
	std::map<std::string, std::size_t> count;
	std::vector<std::pair<std::size_t, std::string>> sorted;
	for (std::string line; std::getline(in, line);)
		for (std::sregex_iterator it(line.begin(), line.end(), word), end; it != end; ++it)
			count[it->str()]++;
	for (auto &[name, n] : count)
		sorted.emplace_back(n, name);
	std::ranges::sort(sorted, std::greater<>{});
	std::unordered_map<std::string, std::shared_ptr<std::deque<double>>> more;
	std::async([&] { for (auto &[n, name] : sorted) more[name] = std::make_shared<std::deque<double>>(n); }).get();
	std::filesystem::path path(argv[1]);
	for (auto &[n, name] : sorted)
		std::cout << std::setw(8) << n << ' ' << name << '\n';
	return more.size() + path.string().size() + argc;
}
